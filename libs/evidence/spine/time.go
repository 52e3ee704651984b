package spine

import (
	"regexp"
	"strings"
	"time"
)

// FormatTime writes an instant as every document does: UTC with Z, a fraction only
// where there is one.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999999Z") }

// IsTimestamp reports whether s is YYYY-MM-DDThh:mm:ss[.frac]Z and a real instant. The
// fraction has one to nine digits.
func IsTimestamp(s string) bool {
	if len(s) < len("2006-01-02T15:04:05Z") || s[len(s)-1] != 'Z' || s[10] != 'T' {
		return false
	}
	whole, frac, dotted := strings.Cut(s[:len(s)-1], ".")
	if dotted && (frac == "" || len(frac) > 9 || strings.Trim(frac, "0123456789") != "") {
		return false
	}
	_, err := time.Parse("2006-01-02T15:04:05", whole)
	return err == nil && len(whole) == len("2006-01-02T15:04:05")
}

// isoLayouts are the ISO 8601 forms of a date and time with a zone. Go reads a
// fraction after the seconds of any of them.
var isoLayouts = func() []string {
	var out []string
	for _, clock := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "20060102T150405", "20060102T1504"} {
		for _, zone := range []string{"Z07:00", "Z0700", "Z07"} {
			out = append(out, clock+zone)
		}
	}
	return out
}()

// What Go's layouts take and ISO 8601 or a document does not: more digits of a
// fraction than nine, a zone of a day or more, or of 60 minutes past an hour.
var (
	finer  = regexp.MustCompile(`[.,][0-9]{10}`)
	noZone = regexp.MustCompile(`[+-](?:(?:2[4-9]|[3-9][0-9])(?::?[0-9]{2})?|[0-9]{2}:?[6-9][0-9])\z`)
)

// ParseTime parses an ISO 8601 date and time that names its zone, in any of the usual
// spellings, and refuses others with the fault invalid_timestamp. The result is stored
// as FormatTime writes it, so a fraction finer than that is refused.
func ParseTime(s string) (time.Time, error) {
	text := strings.TrimSpace(s)
	if len(text) > 10 && text[10] == ' ' { // a blank between date and time
		text = text[:10] + "T" + text[11:]
	}
	text = strings.ToUpper(text)
	_, tail, _ := strings.Cut(text, "T")
	if finer.MatchString(tail) || noZone.MatchString(tail) {
		text = "" // which no layout has
	}
	for _, layout := range isoLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
				break
			}
			return t, nil
		}
	}
	return time.Time{}, &Fault{Code: "invalid_timestamp", Detail: "a time is ISO 8601 with its zone, such as 2026-01-02T03:04:05Z"}
}
