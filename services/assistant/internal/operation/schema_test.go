package operation_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// TestSchemas contains the exact schemas that models are given.
func TestSchemas(t *testing.T) {
	t.Parallel()
	schemas := map[operation.Verb]json.RawMessage{}
	for _, v := range operation.Verbs() {
		schemas[v] = operation.Schema(v)
		var s struct {
			Type                 string
			Properties           map[string]map[string]any
			Required             []string
			AdditionalProperties *bool
		}
		if err := json.Unmarshal(schemas[v], &s); err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		if s.Type != "object" || s.AdditionalProperties == nil || *s.AdditionalProperties || operation.About(v) == "" {
			t.Errorf(`%s: %s; want s.Type == "object" && s.AdditionalProperties != nil && !*s.AdditionalProperties && operation.About(v) != ""`, v, schemas[v])
		}
		for name, p := range s.Properties {
			if p["type"] == nil || p["description"] == "" {
				t.Errorf(`%s: the property %s says nothing; want p["type"] != nil && p["description"] != ""`, v, name)
			}
		}
		for _, name := range s.Required {
			if s.Properties[name] == nil {
				t.Errorf("%s requires %s and has none; want s.Properties[name] != nil", v, name)
			}
		}
		if p := s.Properties["name"]; p != nil && p["pattern"] != operation.NamePattern {
			t.Errorf(`%s: name is %v; want (p == nil || p["pattern"] == operation.NamePattern)`, v, p)
		}
	}
	got, err := json.MarshalIndent(schemas, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const golden = "testdata/schemas.json"
	if assistanttest.Updating() {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the schemas differ from %s; run with -update and read the diff", golden)
	}
	if operation.Schema("exec") != nil || operation.About("exec") != "" {
		t.Error("an unknown verb has a schema")
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	three := int32(3)
	for _, tc := range []struct {
		verb operation.Verb
		args string
		want operation.Operation
	}{
		{operation.List, `{"kind":"pods","namespace":null,"limit":5}`, operation.Operation{Kind: "pods", Limit: 5}},
		{operation.Scale, `{"kind":"deployment","name":"api","replicas":3}`, operation.Operation{Kind: "deployment", Names: []string{"api"}, Replicas: &three}},
		{operation.Delete, `{"kind":"pod","names":["a","a","b"]}`, operation.Operation{Kind: "pod", Names: []string{"a", "b"}}},
		{operation.Drain, `{"names":["n1"]}`, operation.Operation{Kind: "node", Names: []string{"n1"}}},
		{operation.Patch, `{"kind":"cj","name":"x","patch":"{\"spec\":{\"suspend\":true}}","patch_type":"merge"}`, operation.Operation{Verb: operation.Suspend, Kind: "cj", Names: []string{"x"}}},
		{operation.Get, `{"kind":"pod","name":"a"}`, operation.Operation{Kind: "pod", Names: []string{"a"}}},
		{operation.Logs, `{"pod":"api-0","tail":5}`, operation.Operation{Kind: "pod", Names: []string{"api-0"}, Tail: 5}},
		{operation.Logs, `{"kind":"deploy","name":"api"}`, operation.Operation{Kind: "deploy", Names: []string{"api"}}},
		{operation.CanI, ` `, operation.Operation{}},
	} {
		if tc.want.Verb == "" {
			tc.want.Verb = tc.verb
		}
		got, err := operation.Decode(tc.verb, []byte(tc.args))
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s %s: %+v, %v; want reflect.DeepEqual(got, tc.want)", tc.verb, tc.args, got, err)
		}
	}
	for _, tc := range []struct {
		verb   operation.Verb
		args   string
		reason operation.Reason
	}{
		{"exec", `{}`, operation.UnknownVerb},
		{operation.List, `[]`, operation.InvalidArgument},
		{operation.Patch, `{"kind":"deploy","name":"x","patch":"[{\"op\":\"remove\",\"path\":\"/spec/x\"}]","patch_type":"json"}`, operation.InvalidArgument},
		{operation.List, `{"kind":"pods"`, operation.InvalidArgument},
		{operation.List, `{"kind":"pods"}{}`, operation.InvalidArgument},
		{operation.List, `{"kind":"pods"}}`, operation.InvalidArgument},
		{operation.List, `{"kind":"pods","kind":"nodes"}`, operation.InvalidArgument},
		{operation.List, `{"Kind":"pods"}`, operation.UnknownFlag},
		{operation.List, `{"kind":"pods","verb":"delete"}`, operation.UnknownFlag},
		{operation.List, `{"kind":"pods","as":"admin"}`, operation.UnknownFlag},
		{operation.List, `{"kind":7}`, operation.InvalidArgument},
		{operation.List, `{"kind":"pods","limit":501}`, operation.InvalidArgument},
		{operation.List, `{}`, operation.MissingArgument},
		{operation.Get, `{"kind":"pods","names":["--as=admin"]}`, operation.InvalidArgument},
		{operation.Get, `{"kind":"pods","names":["a;b"]}`, operation.InvalidArgument},
		{operation.Get, `{"kind":"pods","names":["a/b"]}`, operation.InvalidArgument},
		{operation.Get, `{"kind":"--raw","names":["a"]}`, operation.InvalidArgument},
		{operation.Scale, `{"kind":"deploy","name":"a","replicas":1.5}`, operation.InvalidArgument},
		{operation.Scale, `{"kind":"deploy","name":null,"replicas":1}`, operation.MissingArgument},
		{operation.Restart, `{"kind":"deploy","names":["a"]}`, operation.UnknownFlag},
		{operation.Get, `{"kind":"pod","name":"a","names":["b"]}`, operation.InvalidArgument},
		{operation.Logs, `{"pod":"a","name":"b"}`, operation.InvalidArgument},
		{operation.Logs, `{}`, operation.MissingArgument},
		{operation.Logs, `{"pod":"a","container":"B"}`, operation.InvalidArgument},
		{operation.Suspend, `{"kind":"deploy","name":"a"}`, operation.InvalidArgument},
		{operation.RunJob, `{"kind":"job","name":"a","new_name":"b"}`, operation.InvalidArgument},
		{operation.QueryLoki, `{"logql":"{}","since":"48h"}`, operation.InvalidArgument},
		{operation.QueryPrometheus, `{"promql":" "}`, operation.MissingArgument},
		{operation.Delete, `{"kind":"pod","label_selector":" "}`, operation.InvalidArgument},
		{operation.Create, `{"manifest":"kind: X"}`, operation.InvalidManifest},
	} {
		_, err := operation.Decode(tc.verb, []byte(tc.args))
		var fault *operation.Fault
		if !errors.As(err, &fault) || fault.Reason != tc.reason {
			t.Errorf("%s %s: %v, want %s", tc.verb, tc.args, err, tc.reason)
		}
	}
}

// FuzzDecode: a model's arguments are either refused with a fault or become a valid operation of that verb or of the
// one that a patch is equivalent to.
func FuzzDecode(f *testing.F) {
	f.Add("list", `{"kind":"pods"}`)
	f.Add("patch", `{"kind":"cj","name":"x","patch":"{\"spec\":{\"suspend\":true}}"}`)
	f.Add("create", `{"manifest":"a: &a [*a]"}`)
	f.Add("taint", `{"names":["n"],"taints":["a=b:NoExecute"]}`)
	f.Fuzz(func(t *testing.T, verb, args string) {
		o, err := operation.Decode(operation.Verb(verb), []byte(args))
		if err != nil {
			var fault *operation.Fault
			if !errors.As(err, &fault) || fault.Sentence == "" {
				t.Fatalf(`refused without a fault: %v; want errors.As(err, &fault) && fault.Sentence != ""`, err)
			}
			return
		}
		if err := o.Validate(); err != nil || !slices.Contains(operation.Verbs(), o.Verb) {
			t.Fatalf("decoded an invalid %+v: %v; want slices.Contains(operation.Verbs(), o.Verb)", o, err)
		}
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var back operation.Operation
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("stored as %s: %v", raw, err)
		}
		if err := back.Validate(); err != nil || !reflect.DeepEqual(back, o) {
			t.Fatalf("stored as %s: got %+v, %v, want %+v", raw, back, err, o)
		}
	})
}
