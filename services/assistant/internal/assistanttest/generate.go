package assistanttest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// GenerateOperation returns a random normalized operation of the verb.
func GenerateOperation(r *rand.Rand, v operation.Verb) operation.Operation {
	g := generator{r}
	o := operation.Operation{Verb: v}
	if !nodeVerb(v) && v != operation.WhoAmI && v != operation.APIResources && v != operation.ClusterInfo && v != operation.Explain && v != operation.QueryPrometheus && v != operation.QueryLoki && g.maybe() {
		o.Namespace = g.label()
	}
	if v.Writes() {
		o.DryRun = r.IntN(4) == 0
		g.write(&o)
	} else {
		g.read(&o)
	}
	return operation.Normalize(o)
}

func nodeVerb(v operation.Verb) bool {
	switch v {
	case operation.Cordon, operation.Uncordon, operation.Drain, operation.Taint:
		return true
	}
	return false
}

type generator struct{ *rand.Rand }

func (g generator) maybe() bool { return g.IntN(2) == 0 }

func (g generator) pick(words ...string) string { return words[g.IntN(len(words))] }

func (g generator) label() string {
	return g.pick("shop", "api", "a", "x-1", "0", "team-b", strings.Repeat("n", 63))
}

func (g generator) name() string {
	return g.pick("api", "api-7d9f-x", "0", "a.b", "system:node", "v1.apps", strings.Repeat("a", 253))
}

func (g generator) names() []string {
	var names []string
	for range 1 + g.IntN(3) {
		names = append(names, g.name())
	}
	return names
}

func (g generator) kind() string {
	return g.pick("pod", "pods", "po", "Deployment", "deployments.apps", "svc", "cj", "cronjob", "ns", "widgets.example.com", "StatefulSet.v1.apps")
}

func (g generator) selector() string {
	return g.pick("app=api", "app!=api", "a in (b,c),!d", "x,y notin (z)", "app=api,tier=web", "n>1")
}

// text returns arbitrary text for a value, often with characters special to a shell.
func (g generator) text() string {
	return g.pick("plain", "two words", `it's`, `"quoted"`, "$HOME", "`id`", "a;b|c&d>e<f", "line\nline\ttab", "ünïcode ☸", `back\slash`, "-dash", "--as=admin", "a=b=c", "*?[x]{y}~#!", "<<'EOF'", "''", "\\\n")
}

func (g generator) ref(o *operation.Operation) { o.Kind, o.Names = g.kind(), []string{g.name()} }

func (g generator) several(o *operation.Operation) {
	switch g.IntN(3) {
	case 0:
		o.Kind, o.Names = g.kind(), g.names()
	case 1:
		o.Kind, o.Names = "pods,svc,ns", g.names()
	default:
		o.Names = []string{"pod/" + g.name(), "svc/" + g.name(), "deployments.apps/" + g.name()}
	}
}

func (g generator) scope(o *operation.Operation) {
	if g.IntN(3) == 0 {
		o.Namespace, o.AllNamespaces = "", true
	}
	if g.maybe() {
		o.LabelSelector = g.selector()
	}
}

func (g generator) read(o *operation.Operation) {
	switch o.Verb {
	case operation.List:
		o.Kind = g.pick(g.kind(), "pods,svc", "all")
		g.scope(o)
		if g.maybe() {
			o.FieldSelector = g.pick("status.phase!=Running", "metadata.name=x,spec.nodeName=n")
		}
		o.Limit, o.Output = g.IntN(501), g.pick("", "wide", "yaml", "json", "name", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`, "custom-columns=NAME:.metadata.name,NODE:.spec.nodeName")
		o.SortBy = g.pick("", ".metadata.creationTimestamp", "{.spec.x}")
	case operation.Get:
		g.several(o)
		o.Output = g.pick("", "yaml")
	case operation.Describe:
		if g.maybe() {
			g.several(o)
		} else {
			o.Kind = g.kind()
			g.scope(o)
		}
		o.Limit = g.IntN(501)
	case operation.Logs:
		if g.maybe() {
			o.LabelSelector = g.selector()
		} else {
			g.ref(o)
		}
		o.Container, o.Since = g.pick("", g.label()), g.pick("", "15m", "1h30m", "24h", "90s")
		o.Previous, o.Tail, o.Contains = g.maybe(), g.IntN(501), g.pick("", g.text())
		if strings.TrimSpace(o.Contains) == "" {
			o.Contains = ""
		}
	case operation.Events:
		if g.maybe() {
			g.ref(o)
		} else if g.maybe() {
			o.Namespace, o.AllNamespaces = "", true
		}
		o.Limit = g.IntN(501)
	case operation.Top:
		o.Kind = g.pick("pod", "pods", "nodes", "no")
		if g.maybe() {
			o.Names = []string{g.name()}
		} else {
			g.scope(o)
		}
	case operation.RolloutHistory:
		g.ref(o)
		o.Revision = int64(g.IntN(9))
	default:
		g.ask(o)
	}
}

func (g generator) ask(o *operation.Operation) {
	switch o.Verb {
	case operation.CanI:
		if g.maybe() {
			o.Action, o.Kind = g.pick("get", "delete", "*"), g.kind()
			if g.maybe() {
				o.Names = []string{g.name()}
			}
			o.Subresource = g.pick("", "log")
		}
		if g.IntN(3) == 0 {
			o.Namespace, o.AllNamespaces = "", true
		}
	case operation.Explain:
		o.Kind, o.Path = g.pick("pods", "Deployment", "svc"), g.pick("", "spec", "spec.template.spec", "$ref")
		o.APIVersion, o.Recursive = g.pick("", "v1", "apps/v1"), g.maybe()
	case operation.Diff:
		o.Manifest = g.manifest()
	case operation.QueryPrometheus:
		o.PromQL, o.RangeMinutes = g.pick("-sum(up)", `rate(x{a="b"}[5m])`, g.query()), g.IntN(100)
	case operation.QueryLoki:
		o.LogQL, o.Limit, o.Since = g.pick(`{a="b"} |= "x"`, g.query()), g.IntN(501), g.pick("", "1h")
	}
}

func (g generator) query() string { return "x" + g.text() }

func (g generator) manifest() string {
	return g.pick(
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  text: |\n    it's $HOME\n    EOF\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  b: |1\n\n   EOF\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b, namespace: shop}\nspec:\n  selector: {app: \"x\"}\n",
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}]}`,
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  c: \"x\nEOF\nEOF_\n  y\"\n",
	)
}

func (g generator) pairs(value func() string) map[string]string {
	m := map[string]string{}
	for i := range 1 + g.IntN(3) {
		m[fmt.Sprintf("KEY_%d", i)] = value()
	}
	return m
}
