// Package scheduler runs the learning part of a training as a batch job: in this process, which is the mock scheduler,
// or on a Slurm cluster by its commands.
package scheduler

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"runtime/debug"
)

// Mock is the mode and the value of the tag hpc_scheduler.
const Mock = "mock"

// Modes of this build.
var Modes = []string{Mock, SlurmMode}

// Job is a job that was submitted.
type Job struct {
	// ID is mock-<8 hex digits>.
	ID   string
	done chan struct{}
	err  error
}

// Submit starts the work. It ends when work returns, which it should soon after ctx ends. Every job must be waited for.
func Submit(ctx context.Context, work func(context.Context) error) *Job {
	var id [4]byte
	_, _ = rand.Read(id[:]) // it never fails, and never returns short
	j := &Job{ID: "mock-" + hex.EncodeToString(id[:]), done: make(chan struct{})}
	go func() {
		defer close(j.done)
		// A batch job that crashes fails alone; so does this one.
		defer func() {
			if p := recover(); p != nil {
				j.err = fmt.Errorf("job %s crashed: %v\n%s", j.ID, p, debug.Stack())
			}
		}()
		j.err = work(ctx)
	}()
	return j
}

// Wait returns the work's error once it has ended.
func (j *Job) Wait() error {
	<-j.done
	return j.err
}
