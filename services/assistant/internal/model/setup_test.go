package model_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/model"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// cluster is the Toolbox of a test: one pod that crashes, and the text of its logs.
type cluster struct {
	mu    sync.Mutex
	calls []operation.Operation
	log   string
	fails error // of every call
	once  bool  // or of the first one only
	cut   bool  // logs are truncated
	idle  bool  // there is a suspended CronJob
	down  error // of every snapshot
	// gate, if set, blocks each call until the test releases it.
	gate func(ctx context.Context, op operation.Operation) error
	// untrusted collects what a turn would.
	untrusted []string
}

func (c *cluster) Call(ctx context.Context, op operation.Operation) (turn.Output, error) {
	if c.gate != nil {
		if err := c.gate(ctx, op); err != nil {
			return turn.Output{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, op)
	if err := c.fails; err != nil {
		if c.once {
			c.fails = nil
		}
		return turn.Output{}, err
	}
	if op.Verb == operation.Logs {
		c.untrusted = append(c.untrusted, c.log)
		return turn.Output{Text: c.log, Untrusted: []string{c.log}, Truncated: c.cut}, nil
	}
	return turn.Output{Text: "NAME   READY   STATUS\napi-1  0/1     CrashLoopBackOff"}, nil
}

func (c *cluster) Snapshot(context.Context, string) (*engine.Snapshot, error) {
	if c.down != nil {
		return nil, c.down
	}
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	var jobs []batchv1.CronJob
	if c.idle {
		suspended := true
		jobs = append(jobs, batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "report", UID: "u2", CreationTimestamp: at}, Spec: batchv1.CronJobSpec{Schedule: "0 3 * * *", Suspend: &suspended}})
	}
	return &engine.Snapshot{
		CronJobs:   jobs,
		Taken:      at.Time,
		Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}},
		Pods: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api-1", UID: "u1", CreationTimestamp: at},
			Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "app", Image: "api:1"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Image: "api:1", RestartCount: 7,
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: at}},
			}}},
		}},
	}, nil
}

func (c *cluster) verbs() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for _, op := range c.calls {
		list = append(list, string(op.Verb))
	}
	return strings.Join(list, " ")
}

// reader is the Sink of a test.
type reader struct {
	mu       sync.Mutex
	text     strings.Builder
	tokens   int
	statuses []string
	plan     []chat.Step // the last one
	warned   []fault.Failure
	token    func(string) // called with each token
}

func (r *reader) Status(_ chat.Phase, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses = append(r.statuses, message)
}

func (r *reader) Plan(steps []chat.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plan = steps
}

func (r *reader) Token(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.WriteString(text)
	r.tokens++
	if r.token != nil {
		r.token(text)
	}
}

func (r *reader) Warn(f fault.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warned = append(r.warned, f)
}

// playbooks is the engine to fall back to.
type playbooks struct{ asked int }

func (p *playbooks) Investigate(_ context.Context, t turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
	p.asked++
	sink.Token("Playbooks on: " + t.Query)
	return turn.Outcome{}, nil
}

// bundle is an engine on a scripted model.
type bundle struct {
	*model.Engine
	t         testing.TB
	server    *scriptedmodel.Server
	url       string
	cluster   *cluster
	playbooks *playbooks
	sink      *reader
	log       *strings.Builder
	fell      []string
}

const key = "sk-test-4f1a-never-shown"

func setup(t testing.TB, c model.Config, s scriptedmodel.Script) *bundle {
	t.Helper()
	b := &bundle{t: t, cluster: &cluster{}, playbooks: &playbooks{}, sink: &reader{}, log: &strings.Builder{}}
	var err error
	if b.server, err = scriptedmodel.New(s, nil); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(b.server)
	t.Cleanup(h.Close)
	c.BaseURL, b.url = h.URL+"/v1", h.URL
	c.Model, c.Key = "scripted", key
	b.Engine, err = model.New(c, b.playbooks, slog.New(slog.NewTextHandler(io.Writer(b.log), nil)), model.Hooks{
		FellBack: func(reason string) { b.fell = append(b.fell, reason) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newTurn(query string) turn.Turn {
	return turn.Turn{Session: "s-1", Number: 1, Who: event.Who{Principal: "ann", Role: guard.Admin}, Query: query}
}

// ask runs a turn that must succeed.
func (b *bundle) ask(q turn.Turn) (turn.Outcome, string) {
	b.t.Helper()
	out, err := b.Investigate(b.t.Context(), q, b.cluster, b.sink)
	if err != nil {
		b.t.Fatal(err)
	}
	if got := b.server.Unexpected(); len(got) > 0 {
		b.t.Errorf("the model was surprised: %q; want len(got) <= 0", got)
	}
	return out, b.sink.text.String()
}

// last returns the last request that the model got.
func (b *bundle) last() scriptedmodel.Request {
	b.t.Helper()
	all := b.server.Requests()
	if len(all) == 0 {
		b.t.Fatal("the model was not asked")
	}
	return all[len(all)-1]
}

func wantIn(t testing.TB, text string, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in\n%s; want strings.Contains(text, p)", p, text)
		}
	}
}

func wantNotIn(t testing.TB, text string, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		if strings.Contains(text, p) {
			t.Errorf("%q in\n%s; want !strings.Contains(text, p)", p, text)
		}
	}
}

var (
	errDown = errors.New("the cluster does not answer")
	discard = slog.New(slog.DiscardHandler)
)

func (*cluster) Runbooks(...runbook.Subject) []runbook.Quote { return nil }

func (*cluster) MetricLabels(context.Context, string, []types.NamespacedName, []types.NamespacedName) (turn.MetricLabels, error) {
	return turn.MetricLabels{}, errors.New("not called")
}
