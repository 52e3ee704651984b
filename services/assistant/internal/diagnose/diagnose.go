package diagnose

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/change"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/investigate"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/recorded"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/tool"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// defaultQuestion is the question if none is given.
const defaultQuestion = "What is wrong?"

// answerLimit is the timeout of one answer.
const answerLimit = 5 * time.Minute

// Options is one question about one recording.
type Options struct {
	From      string // directory or archive
	Namespace string // empty: all
	Question  string // empty: what is wrong
}

// Finding is one problem, causes first.
type Finding struct {
	Class      string   `json:"class"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace,omitempty"`
	Name       string   `json:"name"`
	Cause      string   `json:"cause"`
	Confidence string   `json:"confidence"`
	Evidence   []string `json:"evidence,omitempty"`
	Pods       []string `json:"pods,omitempty"`
	Remedy     string   `json:"remedy,omitempty"`
}

// Answer is the assistant's answer.
type Answer struct {
	AsOf      time.Time `json:"as_of"`
	Namespace string    `json:"namespace,omitempty"`
	Question  string    `json:"question"`
	Text      string    `json:"answer"` // Markdown; its last line notes that it is about a recording
	Findings  []Finding `json:"findings"`
	// NotRead are files of the recording that could not be read, with the reason.
	NotRead []string `json:"not_read,omitempty"`
}

// Ask opens a recording and answers a question about it.
func Ask(ctx context.Context, o Options) (Answer, error) {
	recording, err := recorded.Open(o.From)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	c, err := cluster.Open(ctx, cluster.Options{Config: recording.Config()})
	if err != nil {
		return Answer{}, err
	}
	defer c.Close()
	changes, err := change.New(change.Config{}, change.Deps{Cluster: c, Log: discard, Now: recording.Now})
	if err != nil {
		return Answer{}, err
	}
	tools, err := tool.New(tool.Config{}, tool.Deps{Cluster: c, Planner: change.Planner{Service: changes}, Now: recording.Now})
	if err != nil {
		return Answer{}, err
	}
	a := Answer{AsOf: recording.AsOf, Namespace: o.Namespace, Question: cmp.Or(strings.TrimSpace(o.Question), defaultQuestion), Findings: []Finding{}, NotRead: recording.Skipped}
	var once sync.Once
	found := func(all []engine.Finding) {
		once.Do(func() { a.Findings = listFindings(all) })
	}
	asked := &asking{Turn: turn.Turn{Number: 1, Query: a.Question, Scope: o.Namespace, NoDecisions: true, Who: event.Who{Role: guard.Readonly}}, tools: tools}
	outcome, err := investigate.New(investigate.Config{Found: found, Complaints: true}).Investigate(ctx, asked.Turn, asked, asked)
	if err != nil {
		return Answer{}, err
	}
	if len(outcome.Write) > 0 {
		asked.Token("\n\nThat would change the cluster, which a recording does not allow.")
	}
	a.Text = strings.TrimSpace(asked.text.String()) + "\n\n" + recording.Notice()
	if asked.text.Len() == 0 {
		return a, errors.New("the question was not answered")
	}
	return a, nil
}

func listFindings(all []engine.Finding) []Finding {
	list := make([]Finding, 0, len(all))
	for _, f := range all {
		list = append(list, Finding{
			Class: f.Class.String(), Kind: f.Object.Kind, Namespace: f.Object.Namespace, Name: f.Object.Name, Cause: f.Cause,
			Confidence: f.Confidence.String(), Evidence: f.Evidence, Pods: f.Pods, Remedy: f.Text,
		})
	}
	return list
}

// asking is the Toolbox and the Sink of one question. Nothing is shown before the answer is complete.
type asking struct {
	turn.Turn
	tools turn.Tools

	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

// Call implements turn.Toolbox.
func (a *asking) Call(ctx context.Context, op operation.Operation) (turn.Output, error) {
	return a.tools.Run(ctx, a.Turn, op)
}

// Snapshot implements turn.Toolbox.
func (a *asking) Snapshot(ctx context.Context, namespace string) (*engine.Snapshot, error) {
	return a.tools.Snapshot(ctx, a.Turn, namespace, func(operation.Operation) func(turn.Output, error) {
		return func(turn.Output, error) {}
	})
}

// Runbooks implements turn.Toolbox.
func (a *asking) Runbooks(of ...runbook.Subject) []runbook.Quote { return a.tools.Runbooks(of...) }

// MetricLabels implements turn.Toolbox.
func (a *asking) MetricLabels(ctx context.Context, metric string, pods, known []types.NamespacedName) (turn.MetricLabels, error) {
	return a.tools.MetricLabels(ctx, a.Turn, metric, pods, known)
}

// Token implements turn.Sink.
func (a *asking) Token(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text.WriteString(text)
}

// Status implements turn.Sink.
func (a *asking) Status(chat.Phase, string) {}

// Plan implements turn.Sink.
func (a *asking) Plan([]chat.Step) {}
