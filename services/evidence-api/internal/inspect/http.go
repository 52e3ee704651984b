// Package inspect checks a report that a caller sends and answers with its snapshot.
package inspect

import (
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/exchange"
	"github.com/mlp-platform/platform/services/evidence-api/internal/metrics"
	"github.com/mlp-platform/platform/services/evidence-api/internal/negotiate"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
	"github.com/mlp-platform/platform/services/evidence-api/internal/status"
)

// Handler serves the inspection of reports.
type Handler struct {
	RequestTimeout time.Duration
	Counters       *metrics.Counters
}

// Serve answers with the snapshot of a report and stores nothing.
func (h *Handler) Serve(x *exchange.Exchange) {
	n, f := readBodyLength(x.Request.Header)
	if f != nil {
		x.Fail(f)
		return
	}
	body, err := x.Request.ReadBody(n)
	if err != nil {
		x.Fail(catalogue.New(catalogue.RequestTimeout, "request_timeout_seconds", h.RequestTimeout.Seconds()))
		return
	}
	if !utf8.Valid(body) {
		x.Fail(catalogue.New(catalogue.InvalidUTF8))
		return
	}
	h.Counters.Inspected()
	r, err := report.Parse(body)
	if err != nil {
		x.Fail(invalidReport(err))
		return
	}
	x.Document(document.NewInspection(r))
}

// readBodyLength returns the length of the body, as declared by the headers.
func readBodyLength(h httpd.Header) (int64, *catalogue.Fault) {
	if len(h.Values("Transfer-Encoding")) > 0 {
		return 0, catalogue.New(catalogue.UnsupportedTransferEncoding)
	}
	if contentType, ok := h.Sole("Content-Type"); !ok || !negotiate.IsJSON(contentType) {
		return 0, catalogue.New(catalogue.UnsupportedMediaType, "supported", catalogue.TextArray(negotiate.JSON, negotiate.Vendor))
	}
	if codings := strings.Join(h.Values("Content-Encoding"), ","); codings != "" && !strings.EqualFold(strings.Trim(codings, " \t"), "identity") {
		f := catalogue.New(catalogue.UnsupportedMediaType, "supported", catalogue.TextArray(negotiate.JSON, negotiate.Vendor))
		f.Message = "Send the report as it is, without Content-Encoding."
		return 0, f
	}
	lengths := h.Values("Content-Length")
	if len(lengths) == 0 {
		return 0, catalogue.New(catalogue.LengthRequired)
	}
	var length int64
	for i, text := range lengths {
		n, ok := plainLength(strings.Trim(text, " \t"))
		if !ok || i > 0 && n != length {
			return 0, catalogue.New(catalogue.InvalidContentLength)
		}
		length = n
	}
	if length > status.MaxBody {
		return 0, catalogue.New(catalogue.PayloadTooLarge, "max_request_body_bytes", status.MaxBody)
	}
	return length, nil
}

// plainLength reads any number of digits; a number of more than 18 is the largest int64,
// which is as good.
func plainLength(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	if n, ok := query.ParseDigits(strings.TrimLeft(s[:len(s)-1], "0")+s[len(s)-1:], 18); ok {
		return n, true
	}
	return math.MaxInt64, true
}

// invalidReport returns where a report is invalid and why, without quoting it.
func invalidReport(err error) *catalogue.Fault {
	var fault *report.Fault
	if !errors.As(err, &fault) {
		return &catalogue.Fault{Code: catalogue.InternalError, Cause: err}
	}
	f := catalogue.New(catalogue.InvalidRunEvidence, "path", catalogue.Clip(fault.Path), "reason", fault.Code)
	f.Message = "The body is not a valid evidence report: " + catalogue.Clip(fault.Detail) + "."
	return f
}
