// Package negotiate reads the Accept header and the Content-Type of the evidence API.
package negotiate

import (
	"strconv"
	"strings"
)

// The media types of the API's documents.
const (
	JSON        = "application/json"
	Vendor      = "application/vnd.svc.control-tower.v1+json"
	EventStream = "text/event-stream"
)

// Accept reports whether the values of the Accept header allow a document (with stream:
// an event stream), and which of the two JSON types the answer has. A missing or empty
// header allows everything.
func Accept(values []string, stream bool) (mediaType string, ok bool) {
	all := strings.Join(values, ",")
	if strings.TrimSpace(all) == "" {
		return JSON, true
	}
	mediaType = JSON
	for entry := range strings.SplitSeq(all, ",") {
		name, params, _ := strings.Cut(entry, ";")
		if hasZeroQuality(params) {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case Vendor:
			mediaType, ok = Vendor, true
		case JSON, "application/*", "*/*":
			ok = true
		case EventStream, "text/*":
			ok = ok || stream
		}
	}
	return mediaType, ok
}

// hasZeroQuality reports whether the parameters have a quality of 0. A malformed quality
// is ignored.
func hasZeroQuality(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, value, ok := strings.Cut(p, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		if q, ok := parseQuality(strings.TrimSpace(value)); ok && q == 0 {
			return true
		}
	}
	return false
}

// parseQuality reads a qvalue: 0 to 1 with at most three decimals.
func parseQuality(s string) (float64, bool) {
	if s == "" || len(s) > 5 || strings.Trim(s, "0123456789.") != "" || len(s) > 1 && s[1] != '.' {
		return 0, false
	}
	q, err := strconv.ParseFloat(s, 64)
	return q, err == nil && q <= 1
}

// IsJSON reports whether a Content-Type names one of the two JSON types, in any case and
// with any parameters.
func IsJSON(contentType string) bool {
	name, _, _ := strings.Cut(contentType, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	return name == JSON || name == Vendor
}
