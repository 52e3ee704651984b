// Package fault describes why a command-line program failed, for people and scripts: a sentence, a stable code, how to
// correct it, and the exit code.
package fault

import (
	"errors"
	"fmt"
)

// Exit codes.
const (
	ExitOK      = 0
	ExitRuntime = 1 // a failure, or a check that answered no
	ExitUsage   = 2 // the command line itself is wrong
)

// Error is a failure.
type Error struct {
	Message   string // the fault and its place
	Code      string // stable slug
	Path      string // JSON pointer into the input; "" is the whole document, or no document
	Exit      int
	Hint      string // the command or setting that corrects it; may be empty
	Service   string // the service that answered or did not; may be empty
	Status    int    // its HTTP status; 0 when there was no answer
	RequestID string
	Faults    any // the individual faults, if this one combines several: the error document's member faults
	Cause     error
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Cause }

// Usage is a fault of the command line (exit 2).
func Usage(format string, a ...any) *Error {
	e := New("usage", format, a...)
	e.Exit = ExitUsage
	return e
}

// New is any other failure (exit 1). An error wrapped with %w becomes its cause.
func New(code, format string, a ...any) *Error {
	err := fmt.Errorf(format, a...)
	return &Error{Message: err.Error(), Code: code, Exit: ExitRuntime, Cause: errors.Unwrap(err)}
}

// WithHint returns a copy with a hint how to correct it.
func (e *Error) WithHint(format string, a ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, a...)
	return &c
}

// From makes a fault of any error; nil stays nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Message: err.Error(), Code: "failed", Exit: ExitRuntime, Cause: err}
}
