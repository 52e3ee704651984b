package trial

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/model"
)

// sweepTime is how long, in processor time, a trial may run numbers of rows one after the other.
const sweepTime = 2 * time.Second

// orphanTime limits the life of a trial's process, should the service die: no trial takes as long.
const orphanTime = 15 * time.Minute

// Serve serves a trial if the arguments (without the program's name) request one; asked reports whether they did. Every
// binary that serves models must call it first and exit with the code if asked.
func Serve(args []string) (code int, asked bool) {
	if len(args) != 1 || args[0] != Verb || os.Getenv(marker) == "" {
		return 0, false
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func serve() error {
	// Output of a library must not pass for an answer.
	fd, err := syscall.Dup(1)
	if err != nil {
		return fmt.Errorf("answers: %w", err)
	}
	if err := syscall.Dup3(2, 1, 0); err != nil {
		return fmt.Errorf("answers: %w", err)
	}
	syscall.CloseOnExec(fd)
	out := os.NewFile(uintptr(fd), "answers")
	// The first line is from this binary's own process; the rest is foreign.
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	var req request
	if err := json.Unmarshal(line, &req); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if err := limitProcess(req); err != nil {
		return err
	}
	a := try(in, out, req)
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = out.Write(append(raw, '\n'))
	return err
}

// try opens the model as the service would.
func try(in *bufio.Reader, out io.Writer, req request) answer {
	// The library is loaded when a graph has passed the checks before it.
	if err := os.Setenv("ORT_LIB", req.Library); err != nil {
		return answer{Reason: err.Error()}
	}
	files := model.Files{}
	for _, f := range req.Files {
		data := make([]byte, f.Size)
		if _, err := io.ReadFull(in, data); err != nil {
			return answer{Reason: "request: " + err.Error()}
		}
		files[f.Name] = data
	}
	folder := &Folder{Files: files, fetch: func(name string) ([]byte, error) {
		if slices.Contains(descriptions, name) {
			return nil, nil // they came with the request, if there are any
		}
		return wantFile(in, out, name)
	}}
	m, err := model.Open(folder, model.Options{Threads: req.Threads, Engine: req.Engine, Rows: req.Rows, RunLimit: req.RunLimit, Clock: processorTime, Sweep: sweepTime,
		// The rest is for opening the model.
		SweepLengths: time.Duration(req.Seconds) * time.Second / 2})
	if err != nil {
		return answer{Reason: err.Error(), Memory: runtime.IsOutOfMemory(err)}
	}
	b := m.Bounds()
	return answer{Rows: b.Rows, Length: b.Length} // the process ends with the answer; nothing needs closing
}

// processorTime returns the processor time of this process, which does nothing but the trial. On a machine under load
// it measures the model; the wall clock measures other processes too.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // impossible for the calling process; the parent's timer ends the trial anyway
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// wantFile requests a file; nil if there is none.
func wantFile(in *bufio.Reader, out io.Writer, name string) ([]byte, error) {
	if err := sendJSON(out, answer{Want: name}); err != nil {
		return nil, err
	}
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var h fileHeader
	if err := json.Unmarshal(line, &h); err != nil || h.Size < 0 {
		return nil, err
	}
	data := make([]byte, h.Size)
	_, err = io.ReadFull(in, data)
	return data, err
}

// limitProcess removes the privileges and resources that a trial does not need.
func limitProcess(req request) error {
	data, err := dataSize()
	if err != nil {
		return err
	}
	// Where memory runs out in spite of all, this process is to go first. Not every system allows it.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	for _, l := range []struct {
		resource int
		name     string
		limit    uint64
	}{
		// Private writable memory: unlike the address space, the runtime reserves little of it in advance.
		{syscall.RLIMIT_DATA, "memory", uint64(data + req.Memory)},
		{syscall.RLIMIT_CPU, "processor time", uint64(req.Seconds)},
		{syscall.RLIMIT_FSIZE, "file size", 0},
		{syscall.RLIMIT_CORE, "core size", 0},
		{syscall.RLIMIT_NOFILE, "open files", 64},
	} {
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: l.limit, Max: l.limit}); err != nil {
			return fmt.Errorf("limiting %s: %w", l.name, err)
		}
	}
	debug.SetMemoryLimit(req.Memory / 2) // the rest is the library's
	// If the service dies, nothing kills this process but the timer.
	time.AfterFunc(orphanTime, func() { os.Exit(1) })
	return nil
}

// dataSize is the memory that RLIMIT_DATA counts, in bytes, as this process has it now.
func dataSize() (int64, error) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("reading the memory in use: %w", err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmData:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the memory in use: %w", err)
			}
			return kib << 10, nil
		}
	}
	return 0, errors.New("reading the memory in use: /proc/self/status has no VmData")
}
