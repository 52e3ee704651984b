package controltower

import (
	"fmt"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// ConfigError is an unsafe or invalid setup. Nothing has been sent.
type ConfigError struct{ Detail string }

func (e *ConfigError) Error() string { return "controltower: " + e.Detail }

func misuseError(format string, args ...any) error {
	return &ConfigError{Detail: fmt.Sprintf(format, args...)}
}

// TransportError is an exchange that could not complete, or a stream that stalled
// or ended without its marker.
type TransportError struct {
	Detail string
	Err    error // the cause, a context's too; may be nil
}

func (e *TransportError) Error() string {
	if e.Err == nil {
		return "controltower: " + e.Detail
	}
	return "controltower: " + e.Detail + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *TransportError) Unwrap() error { return e.Err }

// ProtocolError is an answer that breaks the contract, so that nothing in it can
// be trusted.
type ProtocolError struct {
	Detail    string
	RequestID string // of the answer, where it had a well-formed one
}

func (e *ProtocolError) Error() string {
	if e.RequestID == "" {
		return "controltower: " + e.Detail
	}
	return "controltower: " + e.Detail + " (request " + e.RequestID + ")"
}

// IntegrityError is a digest that does not verify: the received value is not the
// recorded one. It unwraps to the *ProtocolError it also is.
type IntegrityError struct{ Protocol *ProtocolError }

func (e *IntegrityError) Error() string { return e.Protocol.Error() }

// Unwrap returns the ProtocolError.
func (e *IntegrityError) Unwrap() error { return e.Protocol }

// APIError is the error envelope the server answered with. Branch on Code, never
// on Message.
type APIError struct {
	StatusCode int
	Code       string
	Message    string
	Retryable  bool
	Details    *canon.Object // nil if there are none
	RequestID  string
	RetryAfter int // seconds the server asks the client to wait; -1 if absent
}

func (e *APIError) Error() string {
	return fmt.Sprintf("controltower: %d %s: %s (request %s)", e.StatusCode, e.Code, e.Message, e.RequestID)
}
