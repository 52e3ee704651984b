package investigate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// coverageCase is a file of testdata/coverage: objects as Kubernetes writes them, added to those of base.yaml, and
// questions with required and forbidden parts of each answer.
type coverageCase struct {
	name    string
	log     string
	changes []string
	usage   []string
	asks    []coverageAsk
}

type coverageAsk struct {
	query     string
	must, not []string
}

// readCoverage reads the comments at the top of a case.
func readCoverage(t *testing.T, path string) coverageCase {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := coverageCase{name: strings.TrimSuffix(filepath.Base(path), ".yaml")}
	for line := range strings.Lines(string(data)) {
		text, comment := strings.CutPrefix(strings.TrimRight(line, "\n"), "# ")
		if !comment {
			break
		}
		key, value, ok := strings.Cut(text, ": ")
		if !ok {
			t.Fatalf("%s: %q is no key with a value", path, text)
		}
		switch key {
		case "log":
			c.log += value + "\n"
		case "change":
			c.changes = append(c.changes, value)
		case "usage":
			c.usage = append(c.usage, value)
		case "ask":
			c.asks = append(c.asks, coverageAsk{query: value})
		case "must":
			c.asks[len(c.asks)-1].must = append(c.asks[len(c.asks)-1].must, value)
		case "not":
			c.asks[len(c.asks)-1].not = append(c.asks[len(c.asks)-1].not, value)
		default:
			t.Fatalf("%s: unknown key %q", path, key)
		}
	}
	return c
}

// snapshot is the cluster of a case.
func (c coverageCase) snapshot(t *testing.T) *engine.Snapshot {
	t.Helper()
	files := []string{"../../investigate/testdata/coverage/base"}
	data, err := os.ReadFile(filepath.Join("testdata", "coverage", c.name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "\n---\n") {
		files = append(files, "../../investigate/testdata/coverage/"+c.name)
	}
	s := readFixture(t, c.log, files...)
	for _, change := range c.changes {
		applyChange(t, s, change)
	}
	for _, text := range c.usage {
		var of, cpu string
		if _, err := fmt.Sscan(text, &of, &cpu); err != nil {
			t.Fatal(err)
		}
		pod, container, _ := strings.Cut(of, "/")
		s.Usage = map[engine.Log]corev1.ResourceList{{Namespace: "shop", Pod: pod, Container: container}: {corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	return s
}

// applyChange changes an object of base.yaml.
func applyChange(t *testing.T, s *engine.Snapshot, change string) {
	t.Helper()
	switch change {
	case "node-a unschedulable":
		s.Nodes[0].Spec.Unschedulable = true
	case "web not ready":
		s.Pods[0].Status.Conditions[1].Status = corev1.ConditionFalse
		s.Pods[0].Status.ContainerStatuses[0].Ready = false
		s.Deployments[0].Status.ReadyReplicas = 0
		s.EndpointSlices[0].Endpoints[0].Conditions.Ready = new(bool)
	case "web limit 100m":
		limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		s.Pods[0].Spec.Containers[0].Resources.Limits = limits
		s.Deployments[0].Spec.Template.Spec.Containers[0].Resources.Limits = limits
	default:
		t.Fatalf("unknown change %q", change)
	}
}

// TestCoverage asks about one fault of each class, in people's own words.
func TestCoverage(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "coverage", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		c := readCoverage(t, path)
		if c.name == "base" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, ask := range c.asks {
				b := toolsOn(c.snapshot(t))
				b.run = func(_ context.Context, op operation.Operation) (turn.Output, error) {
					if op.Verb == operation.Logs {
						return turn.Output{Text: c.log, Whole: c.log}, nil
					}
					return turn.Output{Text: "NAME\n" + strings.Join(op.Names, "\n")}, nil
				}
				checkAnswer(t, ask.query, askOnce(t, b, "", ask.query), ask.must, ask.not)
			}
		})
	}
}
