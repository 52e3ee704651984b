package scheduler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// recorded answers each program with the output of Slurm 22.05, one answer a call, the last for all further ones. The
// output of a real cluster is tested in e2e/slurm; these are answers that cannot be provoked there.
type recorded struct {
	answers map[string][]string // "!" in front: the program fails with this
	calls   [][]string
	stdin   string
}

func (r *recorded) Run(_ context.Context, stdin string, argv ...string) (string, error) {
	r.calls, r.stdin = append(r.calls, argv), stdin
	list := r.answers[argv[0]]
	if len(list) == 0 {
		return "", nil
	}
	if len(list) > 1 {
		r.answers[argv[0]] = list[1:]
	}
	if text, failed := strings.CutPrefix(list[0], "!"); failed {
		return "", errors.New(text)
	}
	return list[0], nil
}

func TestSubmitPassesArgumentsNotShell(t *testing.T) {
	t.Parallel()
	r := &recorded{answers: map[string][]string{"sbatch": {"4711;alpha\n"}}}
	id, err := Slurm{Runner: r, Partition: "gpu", Account: "ops"}.Submit(t.Context(), Spec{
		Name: "train-jpcp", Output: "/shared/a b/output.log", Command: []string{"/opt/trainer", "job", "/shared/it's; rm -rf $HOME"},
		Resources: modelrepo.Resources{Nodes: 1, CPUs: 4, GPUs: 2, Mem: "16G", Time: "2:00:00"}, Export: []string{"PATH", "ORT_LIB"},
	})
	if err != nil || id != "4711" {
		t.Fatalf("%q, %v; want 4711", id, err)
	}
	for _, want := range []string{"--parsable", "--partition=gpu", "--account=ops", "--nodes=1", "--cpus-per-task=4", "--gres=gpu:2", "--mem=16G", "--time=2:00:00", "--requeue", "--export=PATH,ORT_LIB", "--output=/shared/a b/output.log"} {
		if !slices.Contains(r.calls[0], want) {
			t.Errorf("arguments %q; want %s among them", r.calls[0], want)
		}
	}
	if want := "#!/bin/sh\nexec '/opt/trainer' 'job' '/shared/it'\\''s; rm -rf $HOME'\n"; r.stdin != want {
		t.Errorf("script %q; want %q", r.stdin, want)
	}
	r.answers["sbatch"] = []string{"sbatch: a message of the day"}
	if _, err := (Slurm{Runner: r}).Submit(t.Context(), Spec{}); err == nil {
		t.Error("an answer without a number was taken for a job; want an error")
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	const forgotten = "!slurm_load_jobs error: Invalid job id specified"
	for _, c := range []struct {
		squeue, sacct string
		want          State
		fails         bool
	}{
		{"PENDING", "", Pending, false},
		{"CONFIGURING", "", Pending, false},
		{"REQUEUED", "", Pending, false},
		{"COMPLETING", "", Running, false},
		{forgotten, "COMPLETED", Completed, false},
		{forgotten, "CANCELLED by 0", Cancelled, false},
		{forgotten, "TIMEOUT", TimedOut, false},
		{forgotten, "OUT_OF_MEMORY", Failed, false},
		{forgotten, "NODE_FAIL\nCOMPLETED", Completed, false}, // it was requeued after the node had failed
		{"", "", Unknown, false},
		{"A_NEW_WORD", "", Unknown, false},
		{forgotten, "!sacct: error: slurm_persist_conn_open: Connection refused", Unknown, true},
	} {
		got, err := Slurm{Runner: &recorded{answers: map[string][]string{"squeue": {c.squeue}, "sacct": {c.sacct}}}}.State(t.Context(), "1")
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("squeue %q, sacct %q: got %s, %v; want %s, error %v", c.squeue, c.sacct, got, err, c.want, c.fails)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]*Usage{
		"COMPLETED|0:0|10800|172800|billing=16,cpu=16,gres/gpu=2,node=1|j": {GPUHours: 6, CPUHours: 48},
		"FAILED|3:0|3600|7200|billing=2,cpu=2,gres/gpu=1|j":                {GPUHours: 1, CPUHours: 2, ExitCode: 3},
		// It was requeued: both times are paid for. The first line is another job's, of the same number.
		"COMPLETED|0:0|36000|36000|cpu=1,gres/gpu=1|old\nNODE_FAIL|1:0|3600|7200|cpu=2,gres/gpu=1|j\nCOMPLETED|0:0|7200|14400|cpu=2,gres/gpu=1|j": {GPUHours: 3, CPUHours: 6},
		"CANCELLED by 0|0:0|0|0||j":                        {},  // it never started
		"COMPLETED|0:0|3600|7200|billing=2,cpu=2,node=1|j": nil, // the site does not account for GPUs
		"RUNNING|0:0|10|20|cpu=2|j":                        nil, // not the whole yet
		"COMPLETED|0:0|ten|20|cpu=2|j":                     nil,
		"COMPLETED|0:0|10|20|gres/gpu=many|j":              nil,
		"COMPLETED":                                        nil,
		"":                                                 nil,
	} {
		got, err := Slurm{Runner: &recorded{answers: map[string][]string{"sacct": {answer}}}}.Usage(t.Context(), "1", 1)
		if (err == nil) != (want != nil) || want != nil && got != *want {
			t.Errorf("%q: got %+v, %v; want %+v", answer, got, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	const down = "!slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
	for _, c := range []struct {
		squeue, sacct string
		want          []string
		fails         bool
	}{
		{"17\n18\n", "99", []string{"17", "18"}, false},
		{"", "99", nil, false}, // squeue knows all that run
		{down, "99", []string{"99"}, false},
		{down, down, nil, true},
	} {
		r := &recorded{answers: map[string][]string{"squeue": {c.squeue}, "sacct": {c.sacct}}}
		got, err := Slurm{Runner: r}.Find(t.Context(), "train-jpcp-k1")
		if !slices.Equal(got, c.want) || (err != nil) != c.fails || !slices.Contains(r.calls[0], "--name=train-jpcp-k1") {
			t.Errorf("squeue %q, sacct %q: got %v, %v by %q; want %v, error %v", c.squeue, c.sacct, got, err, r.calls[0], c.want, c.fails)
		}
	}
}

// A restarting controller is waited for; a job that is no longer known is lost after five polls in a row.
func TestLostJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const down = "!slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
		r := &recorded{answers: map[string][]string{"squeue": {"PENDING", down, down, down, down, "RUNNING", down}, "sacct": {""}}}
		var seen []State
		began := time.Now()
		_, err := Wait(t.Context(), Slurm{Runner: r}, "7", 10*time.Second, func(s State) { seen = append(seen, s) })
		if !errors.Is(err, ErrLost) {
			t.Errorf("got %v; want %v", err, ErrLost)
		}
		if want := []State{Submitted, Pending, Running, Unknown}; !slices.Equal(seen, want) {
			t.Errorf("states %v; want %v", seen, want)
		}
		if took := time.Since(began); took != 110*time.Second {
			t.Errorf("given up after %v; want 11 polls of 10 s", took)
		}
	})
}

func TestJobThatTimesOutEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorded{answers: map[string][]string{"squeue": {"RUNNING", "TIMEOUT"}}}
		st, err := Wait(t.Context(), Slurm{Runner: r}, "7", time.Second, func(State) {})
		if st != TimedOut || err != nil {
			t.Errorf("got %s, %v; want %s", st, err, TimedOut)
		}
	})
}

// Commands that hang are ended, and long output is truncated.
func TestLocalCommands(t *testing.T) {
	t.Parallel()
	if out, err := (Local{}).Run(t.Context(), "in", "cat"); out != "in" || err != nil {
		t.Errorf("got %q, %v; want what was given", out, err)
	}
	if _, err := (Local{}).Run(t.Context(), "", "ls", "/nowhere-at-all"); err == nil || !strings.Contains(err.Error(), "/nowhere-at-all") {
		t.Errorf("got %v; want what the command said", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("stopped by the test")
	cancel(reason)
	if _, err := (Local{}).Run(ctx, "", "sleep", "600"); !errors.Is(err, reason) && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want the reason", err)
	}
	out, err := (Local{}).Run(t.Context(), "", "head", "-c", "3000000", "/dev/zero")
	if len(out) != maxOutput || err != nil {
		t.Errorf("%d bytes, %v; want %d", len(out), err, maxOutput)
	}
}
