package command

import (
	"context"
	"errors"
	"strings"

	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// Fault is why a command failed, as people and scripts see it.
type Fault = fault.Error

// Failf makes a fault.
func Failf(code, format string, a ...any) *Fault {
	f := fault.New(code, format, a...)
	f.Exit = ExitFault
	return f
}

// Codes of faults that belong to no document.
const (
	InvalidArguments = "invalid_arguments" // the command line itself is wrong
	InvalidJSON      = "invalid_json"
	InvalidUTF8      = "invalid_utf8"
	InvalidDocument  = "invalid_document" // the root is no object
	InputReadError   = "input_read_error" // an input file cannot be read
	OutputWriteError = "output_write_error"
	Interrupted      = "interrupted"
	Failed           = "failed" // nothing more precise is known
)

// Usagef is a fault of the command line.
func Usagef(format string, a ...any) *Fault { return Failf(InvalidArguments, format, a...) }

// No means that a check answered no and everything is printed already: exit 1.
//
//lint:ignore ST1012 it is an answer, and reads so: return command.No
var No = errors.New("the check answered no")

// FaultOf makes a fault of any error: the evidence libraries' errors keep their codes.
func FaultOf(err error) *Fault {
	var (
		f      *Fault
		stored *store.Error
		doc    *closed.Fault
		syntax *canon.SyntaxError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.Canceled):
		return &Fault{Code: Interrupted, Message: "interrupted", Cause: err}
	case errors.As(err, &stored):
		f := &Fault{Code: string(stored.Code), Message: stored.Message, Cause: err}
		if len(stored.Allowed) > 0 {
			f.Message = strings.TrimSuffix(f.Message, ".") + "; one of: " + strings.Join(stored.Allowed, ", ")
		}
		if errors.As(err, &doc) {
			f.Path = doc.Path
		}
		return f
	case errors.As(err, &doc):
		return &Fault{Code: doc.Code, Path: doc.Path, Message: doc.Detail, Cause: err}
	case errors.As(err, &syntax):
		return syntaxFault(syntax, err)
	}
	return fault.From(err)
}

func syntaxFault(e *canon.SyntaxError, err error) *Fault {
	f := &Fault{Code: InvalidJSON, Path: e.Path, Message: err.Error(), Cause: err}
	switch e.Reason {
	case canon.InvalidUTF8:
		f.Code = InvalidUTF8
	case canon.NotAnObject:
		f.Code = InvalidDocument
	}
	return f
}
