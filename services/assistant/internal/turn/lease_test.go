package turn_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

func TestRepeat(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	b.engine.do = proposeReplicas(3)
	first := frameText(b.rest(b.begin(newRequest(ann, "scale", "r-a"))))
	if again := frameText(b.rest(b.begin(newRequest(ann, "scale", "r-a")))); again != first {
		t.Errorf("repeat:\n%s\nfirst:\n%s; want again == %v", again, first, first)
	}
	decided := frameText(b.rest(b.begin(newRequest(ann, "yes", "r-b"))))
	b.engine.do = proposeReplicas(4)
	b.say(ann, "scale more")
	b.clock.Forward(24 * time.Hour)
	runs := b.engine.runs.Load()
	for range 4 {
		if again := frameText(b.rest(b.begin(newRequest(ann, "yes", "r-b")))); again != decided {
			t.Errorf("repeated decision:\n%s\nfirst:\n%s; want again == %v", again, decided, decided)
		}
	}
	if n, _ := b.cluster.Writes(t, "api"); n != 1 || b.engine.runs.Load() != runs {
		t.Errorf("%d writes, %d more runs; want n == 1 && b.engine.runs.Load() == runs", n, b.engine.runs.Load()-runs)
	}
	// After ten minutes a question is asked anew; another query under the id is another turn.
	b.rest(b.begin(newRequest(ann, "scale", "r-a")))
	b.rest(b.begin(newRequest(ann, "why?", "r-b")))
	if n := b.engine.runs.Load() - runs; n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
}

// The same request at two replicas at once is one turn, and both get its bytes.
func TestRepeatAtTwoReplicasAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	other := b.replica(turn.Config{})
	var streams [2]string
	var wg sync.WaitGroup
	for i, r := range []*bundle{b, other} {
		wg.Go(func() {
			reader, err := r.Begin(t.Context(), newRequest(ann, "hello", "r-a"))
			if err != nil {
				t.Error(err)
				return
			}
			streams[i] = frameText(r.rest(reader))
		})
	}
	wg.Wait()
	if streams[0] != streams[1] || streams[0] == "" {
		t.Errorf("streams differ:\n%s\n%s", streams[0], streams[1])
	}
	if n := b.engine.runs.Load() + other.engine.runs.Load(); n != 1 {
		t.Errorf("%d runs; want 1", n)
	}
}

// While it is read, at its owner or elsewhere, a turn keeps its session; an orphan makes place.
func TestOneActiveTurn(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"owner", "other"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			c := turn.Config{Busy: 10 * time.Millisecond, Lease: 5 * time.Second}
			b := setup(t, c)
			second := b
			if where == "other" {
				second = b.replica(c)
			}
			began := make(chan struct{})
			b.engine.do = waitForEnd(began)
			reader := b.begin(newRequest(ann, "first", "r-a"))
			<-began
			_, err := second.Begin(t.Context(), newRequest(ann, "second", ""))
			wantCode(t, err, "turn_active")
			reader.Close()
			second.engine.do = nil
			wantIn(t, second.say(ann, "second"), "You asked: second")
			wantIn(t, frameText(second.replay()), "So far.", `"code":"superseded"`, "The text above is all that is known so far.", `"stop"`, `"stream.start"`, "You asked: second")
		})
	}
}

func TestOrphanStops(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{Orphan: 40 * time.Millisecond})
	began := make(chan struct{})
	b.engine.do = waitForEnd(began)
	reader := b.begin(newRequest(ann, "first", "r-a"))
	<-began // a turn that is left before it began ends without a word
	reader.Close()
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := b.Active(); n != 0 {
			return fmt.Errorf("%d turns", n)
		}
		return nil
	})
	wantIn(t, frameText(b.rest(b.begin(newRequest(ann, "first", "r-a")))), "So far.", "had no readers left", `"stop"`)
}

func TestLimitAndDrain(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{Limit: time.Second})
	b.engine.do = waitForEnd(make(chan struct{}))
	wantIn(t, b.say(ann, "first"), "So far.", `"code":"turn_timeout"`, `"stop"`)
	d := b.replica(turn.Config{})
	began := make(chan struct{})
	d.engine.do = waitForEnd(began)
	reader := d.begin(newRequest(ann, "second", ""))
	<-began
	if err := d.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantIn(t, frameText(d.rest(reader)), "So far.", `"code":"shutting_down"`, `"stop"`)
	_, err := d.Begin(t.Context(), newRequest(ann, "third", ""))
	wantCode(t, err, "draining")
	if d.Active() != 0 {
		t.Error("turns are left")
	}
}

// A call that the end of its turn cuts short is not blamed on the cluster.
func TestCutCall(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{Limit: time.Second})
	b.engine.do = func(ctx context.Context, _ turn.Turn, tools turn.Toolbox, _ turn.Sink) (turn.Outcome, error) {
		_, err := tools.Call(ctx, operation.Operation{Verb: operation.List, Kind: "glaciers"})
		return turn.Outcome{}, err
	}
	wantIn(t, b.say(ann, "first"), `"output":"The turn ended before this was answered.","call_id":"call_1","ok":false`, `"code":"turn_timeout"`)
}

// A reader at another replica keeps a turn from being an orphan.
func TestFollowedElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{Orphan: 40 * time.Millisecond, Limit: time.Second})
	began := make(chan struct{})
	b.engine.do = waitForEnd(began)
	reader := b.begin(newRequest(ann, "first", "r-a"))
	<-began
	other := b.replica(turn.Config{})
	follower := other.begin(newRequest(ann, "first", "r-a"))
	head, err := follower.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	wantIn(t, frameText(head)+frameText(other.rest(follower)), `"stream.start"`, "So far.", `"code":"turn_timeout"`, `"stop"`)
}

// A reader that does not keep up is disconnected, and continues where it was.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	wrote := make(chan struct{})
	b.engine.do = func(ctx context.Context, _ turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
		for range 400 {
			sink.Token("token ")
		}
		close(wrote)
		return turn.Outcome{}, nil
	}
	reader := b.begin(newRequest(ann, "much", "r-a"))
	head, err := reader.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-wrote
	if _, err := reader.Next(t.Context()); !errors.Is(err, turn.ErrSlow) {
		t.Fatalf("error %v; want errors.Is(err, turn.ErrSlow)", err)
	}
	reader.Close()
	q := newRequest(ann, "much", "r-a")
	q.After = head[len(head)-1].Place
	tail := b.rest(b.begin(q))
	if got, want := frameText(head)+frameText(tail), frameText(b.replay()); got != want || strings.Count(got, "token ") != 400 {
		t.Errorf("%d and %d bytes, %d tokens", len(got), len(want), strings.Count(got, "token "))
	}
}

// A burst of frames is spread, so that a reader that takes what is there gets all of them.
func TestABurstDoesNotMakeAReaderSlow(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	began := time.Now()
	var took time.Duration
	b.engine.do = func(ctx context.Context, _ turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
		for range 2000 {
			sink.Token("token ")
		}
		took = time.Since(began)
		return turn.Outcome{}, nil
	}
	if got := strings.Count(frameText(b.rest(b.begin(newRequest(ann, "much", "r-a")))), "token "); got != 2000 {
		t.Errorf("%d tokens; want 2000", got)
	}
	if took < 300*time.Millisecond {
		t.Errorf("2,000 frames were written within %v; want them spread over 30 pauses of 10 ms", took)
	}
}

func TestSlowReaderAtTheBound(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	for behind, want := range map[int]error{255: nil, 256: turn.ErrSlow} {
		began, write, wrote := make(chan struct{}), make(chan struct{}), make(chan struct{})
		b.engine.do = func(ctx context.Context, _ turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
			sink.Token("first")
			close(began)
			<-write
			for range behind {
				sink.Token("token ")
			}
			close(wrote)
			<-ctx.Done()
			return turn.Outcome{}, nil
		}
		reader := b.begin(newRequest(ann, fmt.Sprint(behind), ""))
		<-began
		for head := ""; !strings.Contains(head, "first"); {
			frames, err := reader.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			head += frameText(frames)
		}
		close(write)
		<-wrote
		if _, err := reader.Next(t.Context()); !errors.Is(err, want) {
			t.Errorf("%d behind: %v, want %v", behind, err, want)
		}
		reader.Close()
	}
}

// The stream of a turn whose session is deleted under it ends as every stream does, also
// where the same id is in use again.
func TestDeletedSession(t *testing.T) {
	t.Parallel()
	for _, anew := range []bool{false, true} {
		b := setup(t, turn.Config{Lease: 100 * time.Millisecond})
		began := make(chan struct{})
		b.engine.do = waitForEnd(began)
		reader := b.begin(newRequest(ann, "first", ""))
		<-began
		if _, err := b.Store.DeleteSession(t.Context(), "s-1"); err != nil {
			t.Fatal(err)
		}
		if anew {
			other := b.replica(turn.Config{})
			wantIn(t, other.say(bob, "mine now"), "You asked: mine now")
		}
		seen := frameText(b.rest(reader))
		wantIn(t, seen, "So far.", `"code":"session_deleted"`, "The session was deleted", `"stop"`)
		if strings.Contains(seen, "mine now") || strings.Count(seen, `"finish_reason":"stop"`) != 1 {
			t.Errorf("%s; want !strings.Contains(seen, \"mine now\") && strings.Count(seen, `\"finish_reason\":\"stop\"`) == 1", seen)
		}
	}
}

// An owner that sleeps past its lease adds nothing after another replica has closed the
// turn, and its readers see that end.
func TestAbandonedTurn(t *testing.T) {
	t.Parallel()
	c := turn.Config{Lease: time.Minute, Orphan: time.Hour}
	b := setup(t, c)
	began, woken := make(chan struct{}), make(chan struct{})
	b.engine.do = func(_ context.Context, _ turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
		close(began)
		<-woken
		sink.Token("too late")
		return turn.Outcome{}, nil
	}
	reader := b.begin(newRequest(ann, "first", "r-a"))
	<-began
	other := b.replica(c)
	if err := other.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.clock.Forward(time.Minute)
	if err := other.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantIn(t, frameText(other.replay()), `"code":"interrupted"`, "Ask again.", `"stop"`)
	close(woken)
	var ids []turn.Place
	var seen string
	for {
		frames, err := reader.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen += frameText(frames)
		for _, f := range frames {
			ids = append(ids, f.Place)
		}
	}
	reader.Close()
	wantIn(t, seen, `"stream.start"`, `"code":"interrupted"`, `"stop"`)
	for i := range ids[1:] {
		if ids[i+1].Seq <= ids[i].Seq {
			t.Errorf("ids %v; want ids[i+1].Seq > ids[i].Seq", ids)
		}
	}
	if strings.Contains(frameText(b.replay()), "too late") {
		t.Error("the former owner wrote")
	}
}

// A real process dies of SIGKILL inside of an approved write: the same request again
// shows the outcome, and there is one write.
func TestKilledInsideApprovedWrite(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	b.engine.do = proposeReplicas(3)
	b.say(ann, "scale")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1", "CHILD_DATABASE="+b.url)
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // its error is the kill
	if err != nil || line != "reached\n" {
		t.Fatalf("the child said %q, %v; want line == \"reached\\n\"", line, err)
	}
	b.clock.Forward(5 * time.Minute)
	if err := b.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := frameText(b.rest(b.begin(newRequest(ann, "yes", "r-yes"))))
	wantIn(t, first, `"stream.start"`, `"code":"interrupted"`, "Done: ", "3 replicas, as observed.", `"stop"`)
	if again := frameText(b.rest(b.begin(newRequest(ann, "yes", "r-yes")))); again != first {
		t.Error("the repeat differs")
	}
	if n, replicas := b.cluster.Writes(t, "api"); n != 1 || replicas != 3 {
		t.Errorf("%d writes, %d replicas; want n == 1 && replicas == 3", n, replicas)
	}
}
