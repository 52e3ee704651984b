package localloop

import (
	"errors"
	"fmt"

	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// Codes of faults that belong to no document.
const (
	ReadError      = "input_read_error"
	WriteError     = "output_write_error"
	OutputNotEmpty = "output_not_empty"
	OutputInside   = "output_inside_candidate"
)

// Fault is why a run did not take place. Nothing was written.
type Fault struct {
	Code   string
	File   string // the faulty document, if any
	Path   string // JSON pointer into it
	Detail string
	Cause  error
}

func (f *Fault) Error() string {
	switch {
	case f.File == "":
		return f.Detail
	case f.Path == "":
		return fmt.Sprintf("%s: %s", f.File, f.Detail)
	}
	return fmt.Sprintf("%s at %.200s: %s", f.File, f.Path, f.Detail)
}

func (f *Fault) Unwrap() error { return f.Cause }

func faultOf(file string, err error) error {
	var f *closed.Fault
	if errors.As(err, &f) {
		return &Fault{Code: f.Code, File: file, Path: f.Path, Detail: f.Detail, Cause: err}
	}
	return err
}
