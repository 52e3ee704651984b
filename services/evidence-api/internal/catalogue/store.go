package catalogue

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// maxDetail is how many characters a value of the details may have.
const maxDetail = 256

// FromStore converts an error of a read to a fault. Codes that only commands use, and errors other than [store.Error],
// are internal errors.
func FromStore(err error) *Fault {
	var e *store.Error
	if !errors.As(err, &e) {
		return &Fault{Code: InternalError, Cause: err}
	}
	f := &Fault{Code: Code(e.Code), Cause: err}
	if _, ok := byCode[f.Code]; !ok {
		return &Fault{Code: InternalError, Cause: err}
	}
	switch f.Code {
	case StoreError:
		f.Message = e.Message // names the cause: locked, damaged, of another version
	case InvalidLimit:
		f.Details = describeLimits()
	case InvalidState, InvalidEventType:
		allowed := make(canon.Array, len(e.Allowed))
		for i, a := range e.Allowed {
			allowed[i] = a
		}
		f.Details = canon.NewObject(canon.Member{Key: "allowed", Value: allowed})
	case PersistedStateCorrupt, ConnectionRecordInvalid:
		f.Details = canon.NewObject(
			canon.Member{Key: "id", Value: Clip(e.ID)},
			canon.Member{Key: "reason", Value: Clip(e.Reason)},
		)
	}
	return f
}

// FromRead converts any error of a failed read to a fault.
func FromRead(err error) *Fault {
	var f *Fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.DeadlineExceeded):
		return &Fault{Code: StoreError, Message: "The store did not answer within the request timeout.", Cause: err}
	}
	return FromStore(err)
}

// BadLimit returns the fault of a limit that is no number of items.
func BadLimit() *Fault { return &Fault{Code: InvalidLimit, Details: describeLimits()} }

func describeLimits() *canon.Object {
	return canon.NewObject(canon.Member{Key: "minimum", Value: 1}, canon.Member{Key: "maximum", Value: store.MaxLimit})
}

// Clip makes untrusted text fit for details: UTF-8, and not longer than 256 characters.
func Clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= maxDetail {
		return s
	}
	return string([]rune(s)[:maxDetail-1]) + "…"
}
