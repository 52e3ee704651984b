package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/orchestrator"
)

// The worker's calls to a server are tested in e2e/orchestrator, on the stand-in and a real one.

func TestCommandsOfARun(t *testing.T) {
	t.Parallel()
	repo, err := modelrepo.Open("../../../../deploy/modelrepo", "")
	if err != nil {
		t.Fatal(err)
	}
	id := uuid.New()
	all, err := commands(orchestrator.FlowRun{ID: id, Parameters: map[string]any{
		"model_name": "JPCP", "dataset_cls_name": "JobEmbeddings", "is_dummy": true, "commit_sha": "--dummy", "tenant": nil,
		"parameters": map[string]any{"seed": 7.0},
	}}, repo)
	if err != nil || len(all) != 1 {
		t.Fatalf("%q, %v; want one training", all, err)
	}
	slices.Sort(all[0])
	// A value that looks like an option stays a value.
	want := []string{"--commit=--dummy", "--dataset=JobEmbeddings", "--dummy", "--flow-run=" + id.String(), "--model=JPCP", `--parameters={"seed":7}`}
	if !slices.Equal(all[0], want) {
		t.Errorf("got %q; want %q", all[0], want)
	}
	all, err = commands(orchestrator.FlowRun{ID: id, AutoScheduled: true}, repo)
	if err != nil || len(all) != len(repo.Names()) || !slices.Contains(all[0], "--requested-by=schedule") {
		t.Errorf("%q, %v; want a training of each model, requested by the schedule", all, err)
	}
	if _, err := commands(orchestrator.FlowRun{ID: id, Parameters: map[string]any{"model_name": 7}}, repo); err == nil {
		t.Error("a number was taken for a model's name; want an error")
	}
}

func TestJournal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	j, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openJournal(dir); err == nil || !strings.Contains(err.Error(), "WORKER_STATE_DIR") {
		t.Errorf("a second worker with the same folder: %v; want a refusal that names WORKER_STATE_DIR", err)
	}
	claimed, ended, torn := uuid.New(), uuid.New(), uuid.New()
	for _, e := range []entry{{ID: claimed}, {ID: ended}, {ended, &orchestrator.State{Type: orchestrator.Failed, Message: "no rows"}}} {
		if err := j.write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, torn.String()+".json"), []byte(`{"flow_`), 0o600); err != nil {
		t.Fatal(err)
	}
	j.close()
	if j, err = openJournal(dir); err != nil {
		t.Fatal(err)
	}
	defer j.close()
	all, err := j.entries()
	if err != nil {
		t.Fatal(err)
	}
	got := map[uuid.UUID]orchestrator.StateType{}
	for _, e := range all {
		got[e.ID] = ""
		if e.End != nil {
			got[e.ID] = e.End.Type
		}
	}
	// A torn entry is a run that was claimed: the orchestrator knows its outcome.
	if len(got) != 3 || got[claimed] != "" || got[ended] != orchestrator.Failed || got[torn] != "" {
		t.Errorf("got %v; want three runs, one of them FAILED", got)
	}
	if err := j.remove(ended); err != nil {
		t.Error(err)
	}
	if err := j.remove(ended); err != nil {
		t.Errorf("removed twice: %v; want no error", err)
	}
}

func TestClaimer(t *testing.T) {
	t.Parallel()
	w := &Worker{name: "gpu-7"}
	for message, want := range map[string]string{
		w.mark("training"): "gpu-7", "": "", "Worker": "", "Flow run was cancelled": "", "Worker unnamed": "",
	} {
		if got := claimer(message); got != want {
			t.Errorf("%q: got %q; want %q", message, got, want)
		}
	}
}

// While the orchestrator is unreachable the newest lines are kept, and the number dropped is reported.
func TestLinesOfALongAbsence(t *testing.T) {
	t.Parallel()
	away := true
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var batch []orchestrator.Log
		if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
			t.Error(err)
		}
		for _, l := range batch {
			got = append(got, l.Message)
		}
		rw.WriteHeader(http.StatusCreated)
	}))
	defer srv.Close()
	l := &lines{client: orchestrator.New(srv.URL+"/api", srv.Client()), log: slog.New(slog.DiscardHandler), run: uuid.New()}
	const more = 25
	for i := range keptLines + more {
		l.add(orchestrator.Info, fmt.Sprint("line ", i))
	}
	l.send(context.Background())
	if len(got) != 0 || len(l.kept) != keptLines {
		t.Fatalf("%d lines sent, %d kept; want 0, %d", len(got), len(l.kept), keptLines)
	}
	away = false
	l.send(context.Background())
	if len(got) != keptLines+1 || !strings.HasPrefix(got[0], fmt.Sprint(more, " lines before this were dropped")) || got[1] != fmt.Sprint("line ", more) || got[keptLines] != fmt.Sprint("line ", keptLines+more-1) {
		t.Errorf("%d lines, from %q to %q; want %d, the first about %d dropped ones", len(got), got[0], got[len(got)-1], keptLines+1, more)
	}
	if len(l.kept) != 0 {
		t.Errorf("%d lines kept; want none", len(l.kept))
	}
}

func TestLevelOf(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		`{"time":"x","level":"ERROR","msg":"training failed"}`: orchestrator.Err, `{"level":"WARN"}`: orchestrator.Warning,
		"extract   100 %  18239 rows": orchestrator.Info, `{"level":7}`: orchestrator.Info, "{": orchestrator.Info,
	} {
		if got := levelOf(line); got != want {
			t.Errorf("%s: level %d; want %d", line, got, want)
		}
	}
}

// A child's output is read to its end, whatever its content.
func TestChild(t *testing.T) {
	t.Parallel()
	var said []string
	end := runChild(t.Context(), []string{"sh", "-c", `echo one >&2; head -c 100000 /dev/zero | tr '\0' x >&2; echo >&2; echo last >&2; exit 3`}, nil, func(l string) { said = append(said, l) })
	if end.err == nil || end.signalled || !strings.Contains(end.err.Error(), "code 3: last") {
		t.Errorf("got %+v; want code 3 and its last line", end)
	}
	if len(said) != 3 || len(said[1]) > maxLine {
		t.Errorf("%d lines; want three, the long one cut", len(said))
	}
	if end := runChild(t.Context(), []string{"sh", "-c", "kill -9 $$"}, nil, func(string) {}); !end.signalled {
		t.Errorf("got %+v; want one that a signal ended", end)
	}
	if end := runChild(t.Context(), []string{"/nowhere/trainer"}, nil, func(string) {}); end.err == nil || end.signalled {
		t.Errorf("got %+v; want an error", end)
	}
	end = runChild(t.Context(), []string{"sh", "-c", "head -c 3000000 /dev/zero"}, nil, func(string) {})
	if end.err != nil || len(end.stdout) != 1<<20 {
		t.Errorf("%d bytes, %v; want 1 MiB kept", len(end.stdout), end.err)
	}
}
