package trial

import (
	"errors"
	"io/fs"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// Verb is the argument that makes a binary serve a trial; it is in no list of commands.
const Verb = "try-model"

// marker is the variable that a trial's process finds in its environment.
const marker = "PLATFORM_MODEL_TRIAL"

// descriptions are the files sent to the process with the request; it requests the others.
var descriptions = []string{"MLmodel", "platform.json"}

// request is the first line that the process reads; the bytes of Files follow in their order.
type request struct {
	Library string `json:"library"`
	Memory  int64  `json:"memory"`  // bytes beyond what the process has at its start
	Seconds int    `json:"seconds"` // of processor time
	Threads int    `json:"threads"`
	// Engine has no providers: a trial has neither their devices nor the memory that they map.
	Engine   runtime.Engine `json:"engine"`
	Rows     int            `json:"rows"`
	RunLimit time.Duration  `json:"run_limit"`
	Files    []fileHeader   `json:"files"`
}

// fileHeader announces a file. A requested file follows a separate header; its size is −1 if there is none.
type fileHeader struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// answer is a line of the process: the file it wants, or the verdict.
type answer struct {
	Want   string `json:"want,omitempty"`
	Rows   int    `json:"rows,omitempty"`
	Length int    `json:"length,omitempty"` // of open sizes
	Reason string `json:"reason,omitempty"`
	Memory bool   `json:"memory,omitempty"` // the reason is the limit of memory
}

// sourceError is a file that could not be read here, which is nothing the model has done.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }

// readOptional is nil where there is no such file.
func readOptional(src Source, name string, limit int64) ([]byte, error) {
	data, err := src.ReadFile(name, limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &sourceError{err}
	case data == nil:
		data = []byte{}
	}
	return data, nil
}
