package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/services/assistant/internal/change"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/tool"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/registry"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// shared is the cluster of all tests: they only read.
var shared = sync.OnceValue(func() *samplecluster.Cluster { return samplecluster.New(time.Now) })

func TestMain(m *testing.M) {
	code := m.Run()
	shared().Close()
	os.Exit(code)
}

// boxOn gives a toolbox on the sample cluster.
func boxOn(t *testing.T, hidden ...string) turn.Toolbox {
	t.Helper()
	return boxOf(t, shared().Config(), hidden...)
}

func boxOf(t *testing.T, config *rest.Config, hidden ...string) turn.Toolbox {
	t.Helper()
	return boxWith(t, config, tool.Config{}, hidden...)
}

func boxWith(t *testing.T, config *rest.Config, stores tool.Config, hidden ...string) turn.Toolbox {
	t.Helper()
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) { return config, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	policy := guard.Policy{Hidden: hidden}
	changes, err := change.New(change.Config{Policy: policy}, change.Deps{Cluster: c, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.New(stores, tool.Deps{Cluster: c, Policy: policy, Planner: change.Planner{Service: changes}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return turn.ReadWith(tools, turn.Turn{Who: event.Who{Principal: "ann", Role: guard.Readonly}})
}

// callTool runs a tool and checks its result against the schema that the tool names.
func callTool(t *testing.T, box turn.Toolbox, name string, arguments map[string]any) (registry.Result, map[string]any) {
	t.Helper()
	r := registry.New()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Call(t.Context(), box, name, raw)
	if err != nil {
		t.Fatalf("%s %s: %v", name, raw, err)
	}
	tools := r.Tools()
	one := tools[slices.IndexFunc(tools, func(t registry.Tool) bool { return t.Name == name })]
	var s jsonschema.Schema
	if err := json.Unmarshal(one.Structured, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(encoded, &doc); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(doc); err != nil {
		t.Errorf("%s: the result does not fit its schema: %v\n%s", name, err, encoded)
	}
	data, _ := doc["data"].(map[string]any)
	return out, data
}

func TestEveryToolHasASchemaWithoutFurtherMembers(t *testing.T) {
	t.Parallel()
	names := []string{}
	for _, one := range registry.New(registry.Prometheus, registry.Loki, registry.Runbooks).Tools() {
		var s struct {
			Type       string         `json:"type"`
			Properties map[string]any `json:"properties"`
			Additional any            `json:"additionalProperties"`
		}
		if err := json.Unmarshal(one.Arguments, &s); err != nil {
			t.Fatalf("%s: %v", one.Name, err)
		}
		closed, _ := json.Marshal(s.Additional)
		if s.Type != "object" || string(closed) != "false" && string(closed) != `{"not":{}}` {
			t.Errorf("%s: got type %q, additionalProperties %s; want an object that takes no others", one.Name, s.Type, closed)
		}
		for member, schema := range s.Properties {
			if m, _ := schema.(map[string]any); m["description"] == nil {
				t.Errorf("%s.%s: no description", one.Name, member)
			}
		}
		// Clients that map schemas to types of their own may refuse a bare true.
		if strings.Contains(string(one.Arguments)+string(one.Structured), `":true`) {
			t.Errorf("%s: got %s and %s; want no bare true", one.Name, one.Arguments, one.Structured)
		}
		if !strings.HasSuffix(one.About, ".") {
			t.Errorf("%s: %q is no sentence", one.Name, one.About)
		}
		if slices.Contains(names, one.Name) {
			t.Errorf("two tools are called %s", one.Name)
		}
		names = append(names, one.Name)
	}
}

func TestOnlyConfiguredSourcesAreOffered(t *testing.T) {
	t.Parallel()
	stores := func(r *registry.Registry) []string {
		names := []string{}
		for _, one := range r.Tools() {
			if one.Source != registry.Cluster {
				names = append(names, one.Name)
			}
		}
		return names
	}
	for _, row := range []struct {
		configured []registry.Source
		want       []string
	}{
		{nil, []string{}},
		{[]registry.Source{registry.Prometheus}, []string{"query_prometheus"}},
		{[]registry.Source{registry.Loki, registry.Prometheus}, []string{"query_prometheus", "query_loki"}},
	} {
		if diff := cmp.Diff(row.want, stores(registry.New(row.configured...))); diff != "" {
			t.Errorf("with %v (-want +got):\n%s", row.configured, diff)
		}
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	box := boxOn(t)
	for name, row := range map[string]struct{ tool, arguments, want string }{
		"unknown tool":     {"nothing", `{}`, "There is no tool"},
		"no object":        {"diagnose", `[]`, "no JSON object"},
		"unknown member":   {"diagnose", `{"namespaces":"shop"}`, "namespaces"},
		"wrong type":       {"diagnose", `{"namespace":7}`, "string"},
		"missing member":   {"drain_plan", `{}`, "node"},
		"no write":         {"scale", `{"kind":"deployment","name":"api","replicas":1}`, "There is no tool"},
		"of an operation":  {"logs", `{"pods":"x"}`, "takes no"},
		"half of a target": {"diagnose", `{"kind":"pod"}`, "together"},
		"bad namespace":    {"diagnose", `{"namespace":"A_b"}`, "cannot be the name"},
	} {
		_, err := registry.New().Call(t.Context(), box, row.tool, []byte(row.arguments))
		var fault *operation.Fault
		if !errors.As(err, &fault) || !strings.Contains(fault.Error(), row.want) {
			t.Errorf("%s: got %v; want a refusal with %q", name, err, row.want)
		}
	}
	if _, err := registry.New().Call(t.Context(), box, "diagnose", []byte(`{"namespace":null}`)); err != nil {
		t.Errorf("a member that is null: got %v; want it as good as absent", err)
	}
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	box := boxOn(t)
	out, data := callTool(t, box, "diagnose", map[string]any{})
	findings, _ := data["findings"].([]any)
	if len(findings) == 0 || len(out.References) != len(findings) || !strings.Contains(out.Text, "Not looked at:") {
		t.Fatalf("got %d findings, %d references, text %.300s; want both, and what was not looked at", len(findings), len(out.References), out.Text)
	}
	first, _ := findings[0].(map[string]any)
	object, _ := first["object"].(map[string]any)
	if object["name"] == "" || first["cause"] == "" || first["confidence"] == "" {
		t.Errorf("got %v; want object, cause and confidence", first)
	}
	about, _ := callTool(t, box, "diagnose", map[string]any{"namespace": object["namespace"], "kind": object["kind"], "name": object["name"]})
	if !strings.Contains(about.Text, object["name"].(string)) || len(about.References) >= len(out.References) {
		t.Errorf("about %v: got %d of %d findings, %.300s; want those about it only", object, len(about.References), len(out.References), about.Text)
	}
	if strings.Contains(out.Text, "Nothing was found wrong") {
		t.Errorf("got %s; want no all-clear", out.Text)
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	box := boxOn(t)
	_, workloads := callTool(t, box, "fields", map[string]any{"kind": "deployments", "paths": []any{".spec.replicas", ".spec.template.spec.containers[*].image", ".spec.none"}})
	objects, _ := workloads["objects"].([]any)
	if len(objects) == 0 {
		t.Fatalf("got %v; want the deployments", workloads)
	}
	one, _ := objects[0].(map[string]any)
	at, _ := one["object"].(map[string]any)
	values, _ := one["fields"].(map[string]any)
	if at["resource_version"] == nil || values[".spec.replicas"] == nil || values[".spec.template.spec.containers[*].image"] == nil || values[".spec.none"] != nil {
		t.Errorf("got %v; want a version, replicas and images, and no field that is not there", one)
	}
	_, nodes := callTool(t, box, "capacity", nil)
	list, _ := nodes["nodes"].([]any)
	if len(list) == 0 {
		t.Fatalf("got %v; want the nodes", nodes)
	}
	node, _ := list[0].(map[string]any)["node"].(map[string]any)
	for name, arguments := range map[string]map[string]any{
		"drain_plan":     {"node": node["name"]},
		"who_can":        {"verb": "get", "kind": "pods"},
		"certificates":   {},
		"changes_since":  {"hours": 48},
		"events_in_time": {},
		"dependencies":   {"namespace": at["namespace"], "name": at["name"]},
		"reachability":   {"from": map[string]any{"namespace": at["namespace"], "name": at["name"]}, "to": map[string]any{"address": "203.0.113.1"}},
		"list":           {"kind": "pods", "all_namespaces": true},
	} {
		out, _ := callTool(t, box, name, arguments)
		if out.Text == "" {
			t.Errorf("%s: no text", name)
		}
		t.Logf("%s:\n%s\n%v", name, out.Text, out.References)
	}
}

// What is optional may be absent; what is required is missing.
func TestDependenciesThatAreOptional(t *testing.T) {
	t.Parallel()
	sample := samplecluster.New(time.Now)
	t.Cleanup(sample.Close)
	client := kubernetes.NewForConfigOrDie(sample.Config())
	yes, labels := true, map[string]string{"app": "optional"}
	from := func(name string, optional *bool) corev1.EnvFromSource {
		return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: optional}}
	}
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "optional"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "a", Image: "registry.example/a:1", EnvFrom: []corev1.EnvFromSource{from("may-be", &yes), from("both", &yes)}},
				{Name: "b", Image: "registry.example/b:1", EnvFrom: []corev1.EnvFromSource{from("must-be", nil), from("both", nil)}},
			}},
		}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	out, _ := callTool(t, boxOf(t, sample.Config()), "dependencies", map[string]any{"namespace": "default", "name": "optional"})
	got := map[string]string{}
	for _, d := range out.Data.(*registry.Dependencies).Needs {
		got[d.Object.Name] = d.State
	}
	if want := (map[string]string{"may-be": "absent", "both": "missing", "must-be": "missing", "default": got["default"]}); !maps.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}

func TestLogSearch(t *testing.T) {
	t.Parallel()
	box := boxOn(t)
	out, _ := callTool(t, box, "list", map[string]any{"kind": "pods", "all_namespaces": true})
	for _, pod := range out.References {
		found, err := registry.New().Call(t.Context(), box, "log_search", []byte(`{"namespace":"`+pod.Namespace+`","name":"`+pod.Name+`","contains":"E"}`))
		if err != nil {
			continue // one that never started
		}
		if len(found.References) == 0 || found.References[0].Container == "" {
			t.Errorf("%s: got references %v; want the container", pod.Name, found.References)
		}
		stats := found.Data.(*registry.LogStatistics)
		if stats.LinesMatched == 0 {
			continue
		}
		m := stats.Messages[0]
		if m.At == nil || m.At.Line == 0 || m.Count == 0 || !strings.Contains(strings.ToLower(m.Example), "e") {
			t.Errorf("%s: got %+v; want a counted message with the text and its line", pod.Name, m)
		}
		t.Log(found.Text)
		return
	}
	t.Error("no log of the sample cluster has the text")
}

func TestHiddenNamespacesAreInNoFact(t *testing.T) {
	t.Parallel()
	open := boxOn(t)
	all, _ := callTool(t, open, "list", map[string]any{"kind": "pods", "all_namespaces": true})
	hidden := all.References[0].Namespace
	box := boxOn(t, hidden)
	for _, one := range registry.New().Tools() {
		if slices.Contains([]string{"diagnose", "certificates", "changes_since", "events_in_time", "capacity"}, one.Name) {
			out, err := registry.New().Call(context.WithoutCancel(t.Context()), box, one.Name, nil)
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := json.Marshal(out)
			if strings.Contains(string(raw), `"namespace":"`+hidden+`"`) || strings.Contains(out.Text, "`"+hidden+"`") {
				t.Errorf("%s tells of the hidden namespace %s:\n%s", one.Name, hidden, out.Text)
			}
		}
	}
	if _, err := registry.New().Call(t.Context(), box, "diagnose", []byte(`{"namespace":"`+hidden+`"}`)); err == nil {
		t.Error("a hidden namespace was diagnosed")
	}
}
