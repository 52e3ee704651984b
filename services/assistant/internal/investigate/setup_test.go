package investigate_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/change"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/investigate"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/tool"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// readFixture reads clusters from the playbooks' tests into one snapshot.
func readFixture(t testing.TB, log string, files ...string) *engine.Snapshot {
	t.Helper()
	s := &engine.Snapshot{
		Taken: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), Logs: map[engine.Log]string{}, Unread: map[string]bool{},
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join("..", "playbook", "testdata", file+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(data), "\n---\n") {
			if strings.HasPrefix(doc, "# ask: ") || strings.HasPrefix(doc, "# log: ") || strings.HasPrefix(doc, "# change: ") || strings.HasPrefix(doc, "# usage: ") {
				continue // the head of a file of testdata/coverage
			}
			if assistanttest.AddCustomObject(t, s, doc) {
				continue
			}
			o, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
			if err != nil {
				t.Fatalf("%s: %v in %s", file, err, doc)
			}
			if secret, ok := o.(*corev1.Secret); ok {
				s.Secrets = append(s.Secrets, engine.SecretKeys{Namespace: secret.Namespace, Name: secret.Name, Keys: slices.Collect(maps.Keys(secret.Data))})
				continue
			}
			value := reflect.ValueOf(o).Elem()
			for _, list := range reflect.ValueOf(s).Elem().Fields() {
				if list.Kind() == reflect.Slice && list.Type().Elem() == value.Type() {
					list.Set(reflect.Append(list, value))
				}
			}
		}
	}
	for _, want := range s.Wants() {
		s.Logs[want] = log
	}
	return s
}

// tools is a Toolbox that records its calls.
type tools struct {
	snapshot func(ctx context.Context, namespace string) (*engine.Snapshot, error)
	run      func(ctx context.Context, op operation.Operation) (turn.Output, error)
	runbooks *runbook.Folder                                                             // nil: none
	labels   func(metric string, pods []types.NamespacedName) (turn.MetricLabels, error) // nil: the common ones

	mu    sync.Mutex
	lines []string // guarded by mu
}

func (b *tools) note(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line)
}

func (b *tools) Call(ctx context.Context, op operation.Operation) (turn.Output, error) {
	if err := op.Validate(); err != nil {
		return turn.Output{}, err
	}
	if op.Verb.Writes() && !op.DryRun {
		return turn.Output{}, fmt.Errorf("a write was called: %+v", op)
	}
	b.note(kubectl.Render(op))
	return b.run(ctx, op)
}

func (b *tools) Snapshot(ctx context.Context, namespace string) (*engine.Snapshot, error) {
	b.note("snapshot " + namespace)
	return b.snapshot(ctx, namespace)
}

// toolsOn returns a Toolbox for a handmade snapshot.
func toolsOn(s *engine.Snapshot) *tools {
	known := map[string]bool{"": true}
	for _, list := range reflect.ValueOf(s).Elem().Fields() {
		if list.Kind() != reflect.Slice {
			continue
		}
		for i := range list.Len() {
			if o, ok := list.Index(i).Addr().Interface().(interface{ GetNamespace() string }); ok {
				known[o.GetNamespace()] = true
			}
		}
	}
	for i := range s.Namespaces {
		known[s.Namespaces[i].Name] = true
	}
	return &tools{
		snapshot: func(_ context.Context, namespace string) (*engine.Snapshot, error) {
			if !known[namespace] {
				return nil, operation.Refuse(operation.NotFound, "namespace", "There is no namespace %s.", operation.Quote(namespace))
			}
			return s, nil
		},
		run: func(_ context.Context, op operation.Operation) (turn.Output, error) {
			return turn.Output{Text: "NAME\n" + strings.Join(op.Names, "\n")}, nil
		},
	}
}

// shared starts one seeded cluster for all tests, since they only read and its start takes longest. It ends with the
// process. Its clock is frozen: otherwise a crashing container would be restarted after each delay, and run for a
// moment.
var shared = sync.OnceValues(func() (*tool.Tools, error) {
	start := time.Now()
	c, err := cluster.Open(context.Background(), cluster.Options{Seeded: func() (*rest.Config, func()) {
		s := samplecluster.New(func() time.Time { return start })
		return s.Config(), s.Close
	}})
	if err != nil {
		return nil, err
	}
	changes, err := change.New(change.Config{}, change.Deps{Cluster: c, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return tool.New(tool.Config{}, tool.Deps{Cluster: c, Planner: change.Planner{Service: changes}, Now: time.Now})
})

// liveTools is the seeded cluster with the tools of the service.
func liveTools(t *testing.T) *tools {
	t.Helper()
	real, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	by := turn.Turn{Who: event.Who{Principal: "ann", Role: guard.Admin}}
	return &tools{
		snapshot: func(ctx context.Context, namespace string) (*engine.Snapshot, error) {
			return real.Snapshot(ctx, by, namespace, func(operation.Operation) func(turn.Output, error) { return func(turn.Output, error) {} })
		},
		run: func(ctx context.Context, op operation.Operation) (turn.Output, error) { return real.Run(ctx, by, op) },
	}
}

// sink records what is shown.
type sink struct {
	mu     sync.Mutex
	text   strings.Builder // guarded by mu
	tokens int             // guarded by mu
	steps  []chat.Step     // guarded by mu: the last plan
}

func (k *sink) Status(chat.Phase, string) {}

func (k *sink) Plan(steps []chat.Step) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.steps = steps
}

func (k *sink) Token(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tokens++
	k.text.WriteString(text)
}

// answer is the text and the proposed write of one turn.
type answer struct {
	text  string
	write []string
	steps []chat.Step
}

// runTurn runs a turn.
func runTurn(t *testing.T, b *tools, in turn.Turn) answer {
	t.Helper()
	k := &sink{}
	out, err := investigate.New(investigate.Config{}).Investigate(t.Context(), in, b, k)
	if err != nil {
		t.Fatalf("%q: %v", in.Query, err)
	}
	var write []string
	for _, op := range out.Write {
		if err := op.Validate(); err != nil {
			t.Errorf("%q: %+v is not valid: %v", in.Query, op, err)
		}
		write = append(write, kubectl.Render(op))
	}
	for _, s := range k.steps {
		if s.Status != chat.StepDone && s.Status != chat.StepSkipped {
			t.Errorf("%q: step %q is left %s; want (s.Status == chat.StepDone || s.Status == chat.StepSkipped)", in.Query, s.Description, s.Status)
		}
	}
	return answer{k.text.String(), write, k.steps}
}

// askOnce runs a turn without history.
func askOnce(t *testing.T, b *tools, scope, query string) answer {
	t.Helper()
	return runTurn(t, b, turn.Turn{Session: "s-1", Number: 1, Scope: scope, Query: query, Who: event.Who{Principal: "ann", Role: guard.Admin}})
}

// checkAnswer checks the required and forbidden parts of an answer.
func checkAnswer(t *testing.T, query string, a answer, must, not []string) {
	t.Helper()
	for _, say := range must {
		if !strings.Contains(a.text, say) {
			t.Errorf("%q must say %q:\n%s", query, say, a.text)
		}
	}
	for _, say := range not {
		if strings.Contains(strings.ToLower(a.text), strings.ToLower(say)) {
			t.Errorf("%q must not say %q:\n%s", query, say, a.text)
		}
	}
}

// namespaceOf returns the namespace of the first pod or other object of a snapshot.
func namespaceOf(s *engine.Snapshot) string {
	for _, list := range []any{s.Pods, s.Services, s.Namespaces, s.Deployments} {
		v := reflect.ValueOf(list)
		if v.Len() == 0 {
			continue
		}
		o := v.Index(0).Addr().Interface().(interface {
			GetNamespace() string
			GetName() string
		})
		if o.GetNamespace() == "" {
			return o.GetName()
		}
		return o.GetNamespace()
	}
	return ""
}

func (b *tools) Runbooks(of ...runbook.Subject) []runbook.Quote { return b.runbooks.Find(of...) }

func (b *tools) MetricLabels(_ context.Context, metric string, pods, _ []types.NamespacedName) (turn.MetricLabels, error) {
	if b.labels == nil {
		return turn.MetricLabels{Namespace: "namespace", Pod: "pod", All: []string{"namespace", "pod"}}, nil
	}
	return b.labels(metric, pods)
}
