// Package fault is the one error type that mlp shows: a sentence, and how to mend it.
package fault

import (
	"errors"
	"fmt"
)

// Exit codes of mlp.
const (
	ExitOK      = 0
	ExitRuntime = 1 // failure, unreachable service, unmet threshold, refusal, Ctrl-C
	ExitUsage   = 2 // the command line itself is wrong
)

// Error is a failure as people and scripts see it.
type Error struct {
	Sentence  string // what is wrong, and where
	Code      string // stable slug
	Exit      int
	Hint      string // the command or setting that mends it; may be empty
	Service   string // the service that answered or did not; may be empty
	Status    int    // its HTTP status; 0 when there was no answer
	RequestID string
	Faults    any // each single fault, where this one stands for many: the error document's member faults
	Cause     error
}

func (e *Error) Error() string { return e.Sentence }

func (e *Error) Unwrap() error { return e.Cause }

// Usage is a fault of the command line (exit 2).
func Usage(format string, a ...any) *Error {
	return &Error{Sentence: fmt.Sprintf(format, a...), Code: "usage", Exit: ExitUsage}
}

// New is any other failure (exit 1).
func New(code, format string, a ...any) *Error {
	return &Error{Sentence: fmt.Sprintf(format, a...), Code: code, Exit: ExitRuntime}
}

// WithHint returns a copy that says how to mend it.
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
	return &Error{Sentence: err.Error(), Code: "failed", Exit: ExitRuntime, Cause: err}
}
