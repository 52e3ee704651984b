package kubectl_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// TestPipelines: filters after a read behave like the programs of the same names.
func TestPipelines(t *testing.T) {
	t.Parallel()
	lines := []string{"NAME READY", "web-10 1", "web-9 0", "api-1 1", "api-1 1"}
	for line, want := range map[string][]string{
		"kubectl get pods":                                lines,
		"kubectl get pods | grep web":                     {"web-10 1", "web-9 0"},
		"kubectl get pods | grep -v -i WEB | head -2":     {"NAME READY", "api-1 1"},
		"kubectl get pods | grep -c api":                  {"2"},
		"kubectl get pods | grep 'web\\|NAME'":            {"NAME READY", "web-10 1", "web-9 0"},
		"kubectl get pods | grep -E 'web|NAME' | wc -l":   {"3"},
		"kubectl get pods | grep 'a|b'":                   nil,
		"kubectl get pods | grep -F .":                    nil,
		"kubectl get pods | tail -n 1":                    {"api-1 1"},
		"kubectl get pods | grep '1$' | sort -u":          {"api-1 1", "web-10 1"},
		"kubectl get pods | grep api | uniq -c":           {"2 api-1 1"},
		"kubectl get pods | tail -n 4 | sort -n -r -k 2 ": {"web-10 1", "api-1 1", "api-1 1", "web-9 0"},
	} {
		o, filters, err := kubectl.ParsePipeline(line)
		if err != nil || o.Verb != operation.List {
			t.Errorf("%s: %v, %v; want a list", line, o.Verb, err)
			continue
		}
		got := slices.Clone(lines)
		for _, f := range filters {
			got = f(got)
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

// TestPathsWithoutQuotes: field paths may be unquoted, as people type them.
func TestPathsWithoutQuotes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]operation.Operation{
		"kubectl get pods -o jsonpath={.items[*].metadata.name}":   {Verb: operation.List, Kind: "pods", Output: "jsonpath={.items[*].metadata.name}"},
		"kubectl get pods --sort-by={.metadata.name} -o=name":      {Verb: operation.List, Kind: "pods", SortBy: "{.metadata.name}", Output: "name"},
		"kubectl get pods -o custom-columns=A:.spec.x[0],B:.kind ": {Verb: operation.List, Kind: "pods", Output: "custom-columns=A:.spec.x[0],B:.kind"},
	} {
		got, filters, err := kubectl.ParsePipeline(line)
		if err != nil || len(filters) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v and %v, want %+v", line, got, err, want)
		}
	}
	if _, _, err := kubectl.ParsePipeline("kubectl get pods -o jsonpath={$(id)}"); err == nil {
		t.Error("a path with a command in it is read; want a refusal")
	}
}

// TestPipelinesRefused: only filters of a read are allowed after a bar.
func TestPipelinesRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"kubectl get pods | sh", "kubectl get pods | xargs kubectl delete pod", "kubectl get pods | awk '{print $1}'", "kubectl get pods || true", "kubectl get pods |& cat",
		"kubectl delete pod a | grep a", "kubectl get pods | grep a > /tmp/x", "kubectl get pods | grep -f /etc/passwd", "kubectl get pods | grep a /etc/passwd", "kubectl get pods |",
		"kubectl get pods | head /etc/passwd", "kubectl get pods | sort -o x", "kubectl get pods | wc -c", "kubectl get pods | kubectl apply -f -", "kubectl get pods; ls | grep a", "kubectl get pods | grep '('`id`",
		"kubectl get pods | grep -E '('", "kubectl apply -f - <<'EOF' | sh\nkind: Pod\nEOF",
	} {
		o, _, err := kubectl.ParsePipeline(line)
		var fault *operation.Fault
		if !errors.As(err, &fault) || o.Verb != "" {
			t.Errorf("%s: got %+v and %v, want a refusal", line, o, err)
		}
	}
}
