package turn_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

func TestQuestion(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	b.engine.do = func(ctx context.Context, tn turn.Turn, tools turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
		sink.Plan([]chat.Step{{Description: "Look", Status: chat.StepInProgress}})
		list := operation.Operation{Verb: operation.List, Kind: "pods", Namespace: "shop"}
		if _, err := tools.Call(ctx, list); err != nil {
			return turn.Outcome{}, err
		}
		list.Kind = "unicorn"
		var refused *operation.Fault
		if _, err := tools.Call(ctx, list); !errors.As(err, &refused) {
			t.Errorf("unicorn: %v; want errors.As(err, &refused)", err)
		}
		if _, err := tools.Call(ctx, assistanttest.ScaleOperation("api", 9)); !errors.As(err, &refused) {
			t.Errorf("a write through the toolbox: %v; want errors.As(err, &refused)", err)
		}
		sink.Token("All is ")
		sink.Token("well in " + tn.Scope + ".")
		return turn.Outcome{Usage: chat.Usage{PromptTokens: 3, CompletionTokens: 2}}, nil
	}
	q := newRequest(ann, "how is it?", "")
	q.Chat.Context.Namespace, q.Chat.IncludeUsage = "shop", true
	frames := b.rest(b.begin(q))
	wantIn(t, frameText(frames), `"stream.start"`, `"phase":"loading"`, `"type":"plan"`, `"type":"tool_call"`, "Running: kubectl list", `call_1`,
		`"type":"tool_result"`, `"ok":true`, "There is no kind unicorn.", `"ok":false`, `"All is "`, `"well in shop."`, `"finish_reason":"stop"`, `"total_tokens":5`)
	if got, want := frameText(b.replay()), frameText(frames); got != want {
		t.Errorf("replay differs:\n%s\nstreamed:\n%s", got, want)
	}
	b.engine.do = func(_ context.Context, tn turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
		if len(tn.History) != 2 || tn.History[0].Text != "how is it?" || tn.History[1].Text != "All is well in shop." || tn.Scope != "shop" {
			t.Errorf(`history %+v, scope %q; want len(tn.History) == 2 && tn.History[0].Text == "how is it?" && tn.History[1].Text == "All is well in shop." && tn.Scope == "shop"`, tn.History, tn.Scope)
		}
		return turn.Outcome{}, nil
	}
	wantIn(t, b.say(ann, "and now?"), `"stream.start"`, `"content":"There is nothing to add."`, `"stop"`)
	b.cluster.Writes(t, "api")
	var n int
	if err := b.Store.Pool().QueryRow(t.Context(), "select count(*) from outbox where name = 'turn_finished'").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d events, %v; want n == 2", n, err)
	}
}

func TestProposeApproveExecute(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	b.engine.do = proposeReplicas(3)
	prompt := b.say(ann, "scale it to 3")
	wantIn(t, prompt, "I can scale it.", `"phase":"awaiting_approval"`, "--replicas=3", `"hitl_required":true`, `"risk_level":"medium"`, `"finish_reason":"stop","hitl_required":true`)
	if n, _ := b.cluster.Writes(t, "api"); n != 0 {
		t.Fatal("written before the approval")
	}
	b.engine.do = nil
	wantIn(t, b.say(ann, "wait, why?"), "You asked: wait, why?", "Still waiting", `"hitl_required":true`, `"stop"`)
	b.engine.do = proposeReplicas(3)
	done := b.say(ann, "yes")
	wantIn(t, done, `"phase":"executing"`, "Done: ", "Scaled.", "3 replicas, as observed.", "That was all.", `"finish_reason":"stop"}]`)
	if n, replicas := b.cluster.Writes(t, "api"); n != 1 || replicas != 3 {
		t.Fatalf("%d writes, %d replicas; want n == 1 && replicas == 3", n, replicas)
	}
	wantIn(t, b.say(ann, "yes"), "Nothing is waiting")
	b.engine.do = proposeReplicas(5)
	b.say(ann, "scale it to 5")
	wantIn(t, b.say(ann, "no"), "Denied: ", "That was all.", `"finish_reason":"stop"}]`)
	if n, _ := b.cluster.Writes(t, "api"); n != 1 {
		t.Fatal("a denied write ran")
	}
}

// Of two changes one prompt is shown when the second is approved beforehand.
func TestApproveAll(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	b.engine.do = func(_ context.Context, tn turn.Turn, _ turn.Toolbox, _ turn.Sink) (turn.Outcome, error) {
		switch len(tn.Settled) {
		case 0:
			return turn.Outcome{Write: []operation.Operation{assistanttest.ScaleOperation("api", 2)}}, nil
		case 1:
			return turn.Outcome{Write: []operation.Operation{assistanttest.ScaleOperation("web", 2)}}, nil
		}
		return turn.Outcome{}, nil
	}
	b.say(ann, "fix both")
	both := b.say(ann, "approve all")
	wantIn(t, both, "scale deployment/api", "Done", "scale deployment/web", "Done")
	if strings.Contains(both, "hitl_required") {
		t.Error("a second prompt")
	}
	for _, name := range []string{"api", "web"} {
		if n, _ := b.cluster.Writes(t, name); n != 1 {
			t.Errorf("%d writes to %s; want n == 1", n, name)
		}
	}
	// Always-confirm: asks though all is approved beforehand.
	b.engine.do = proposeReplicas(0)
	wantIn(t, b.say(ann, "stop it"), `"always_confirm":true`)
}

func TestSeveralAndByID(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	for _, n := range []int32{2, 3} {
		b.engine.do = proposeReplicas(n)
		b.say(ann, "scale")
	}
	wantIn(t, b.say(ann, "yes"), "2 changes wait; nothing was decided")
	actions, err := b.Actions.Page(t.Context(), "s-1", nil, 100)
	if err != nil || len(actions) != 2 {
		t.Fatalf("%v, %v; want len(actions) == 2", actions, err)
	}
	// Another principal may decide in the session, and say nothing else.
	_, err = b.Begin(t.Context(), newRequest(bob, "hello", ""))
	wantCode(t, err, "forbidden")
	wantIn(t, b.say(bob, "approve "+actions[0].ID.String()), "Done", "--replicas=2")
	// The first moved the target, so the second is not what was shown any more.
	wantIn(t, b.say(ann, "approve "+actions[1].ID.String()), "not as it was shown", "replicas: 2", `"hitl_required":true`)
	wantIn(t, b.say(ann, "no"), "Denied")
	_, err = b.Begin(t.Context(), newRequest(bob, "yes", ""))
	wantCode(t, err, "forbidden")
	if n, _ := b.cluster.Writes(t, "api"); n != 1 {
		t.Errorf("%d writes; want 1", n)
	}
}

// Who may not decide is told so, and not asked again.
func TestReadonlyDecides(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	b.engine.do = proposeReplicas(3)
	b.say(ann, "scale")
	stream := b.say(event.Who{Principal: "eve", Role: guard.Readonly}, "yes")
	wantIn(t, stream, "Readonly callers change nothing.", `"stop"`)
	if strings.Contains(stream, "waits for approval") {
		t.Error("a prompt")
	}
	if n, _ := b.cluster.Writes(t, "api"); n != 0 {
		t.Errorf("%d writes; want 0", n)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	for want, do := range map[string]func(context.Context, turn.Turn, turn.Toolbox, turn.Sink) (turn.Outcome, error){
		`"code":"engine_failed"`: func(_ context.Context, _ turn.Turn, _ turn.Toolbox, s turn.Sink) (turn.Outcome, error) {
			s.Token("I saw something.")
			return turn.Outcome{}, errors.New("secret cause")
		},
		`"code":"cluster_unreachable"`: func(context.Context, turn.Turn, turn.Toolbox, turn.Sink) (turn.Outcome, error) {
			return turn.Outcome{}, &turn.Fail{Failure: fault.ClusterUnreachable, Cause: errors.New("secret cause")}
		},
		`"code":"internal"`: func(context.Context, turn.Turn, turn.Toolbox, turn.Sink) (turn.Outcome, error) {
			panic("secret cause")
		},
		`"code":"budget_spent"`: func(ctx context.Context, _ turn.Turn, _ turn.Toolbox, s turn.Sink) (turn.Outcome, error) {
			for ctx.Err() == nil {
				s.Token(strings.Repeat("x", 64<<10))
			}
			return turn.Outcome{}, ctx.Err()
		},
	} {
		b.engine.do = do
		stream := b.say(ann, "go")
		wantIn(t, stream, `"stream.start"`, `"fatal":true`, want, `"content":"`, `"finish_reason":"stop"`)
		if strings.Contains(stream, "secret cause") {
			t.Error("the cause is in the stream")
		}
	}
}

func TestEmptyQuery(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	wantIn(t, b.say(ann, ""), "Ask about the cluster")
	if b.engine.runs.Load() != 0 {
		t.Error("the engine ran")
	}
}

// The notice is the last line of every answer, whatever wrote the text above it.
func TestNotice(t *testing.T) {
	t.Parallel()
	const notice = "This cluster is a sample."
	b := setup(t, turn.Config{Notice: notice})
	b.engine.do = proposeReplicas(3)
	for _, query := range []string{"", "yes", "scale it", "and now?", "yes", "approve all"} {
		answer := b.say(ann, query)
		if n := strings.Count(answer, notice); n != 1 {
			t.Errorf("%q: the notice is there %d times: %s; want n == 1", query, n, answer)
		}
		_, rest, _ := strings.Cut(answer, notice)
		if strings.Contains(rest, `"content":`) {
			t.Errorf("%q: said after the notice: %s; want !strings.Contains(rest, `\"content\":`)", query, rest)
		}
	}
}
