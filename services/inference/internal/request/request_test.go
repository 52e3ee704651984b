package request

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

func testSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s := &schema.Schema{Columns: []schema.Column{
		{Name: "procs", Kind: schema.Number, Range: schema.Magnitude(math.MaxFloat32)},
		{Name: "hour", Kind: schema.Integer},
		{Name: "queue", Kind: schema.Category},
		{Name: "urgent", Kind: schema.Boolean},
		{Name: "embedding", Kind: schema.Vector, Length: 3, Range: schema.Magnitude(math.MaxFloat32)},
	}}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	return s
}

const good = `{"features": {"embedding": [1, -2.5, 3e1], "queue": "a\u0062", "procs": 4, "urgent": true, "hour": 7.0}, "alias": "staging", "version": null, "probabilities": true}`

func TestFillsRowInAnyOrder(t *testing.T) {
	t.Parallel()
	s := testSchema(t)
	p, faults := ParsePredict([]byte(good), &Object{})
	if faults != nil {
		t.Fatal(faults, "want nil")
	}
	if p.Alias != "staging" || p.Version != "" || !p.Probabilities {
		t.Errorf(`parsed %+v; want p.Alias == "staging" && p.Version == "" && p.Probabilities`, p)
	}
	var row schema.Row
	if f := Fill(p.Features, s, &row); f.Invalid != nil || f.Mismatch != nil {
		t.Fatal(f, "want f.Invalid == nil && f.Mismatch == nil")
	}
	if s.Numbers(&row, 0)[0] != 4 || *s.Int(&row, 1) != 7 || *s.Text(&row, 2) != "ab" || s.Numbers(&row, 3)[0] != 1 {
		t.Errorf(`row %+v; want s.Numbers(&row, 0)[0] == 4 && *s.Int(&row, 1) == 7 && *s.Text(&row, 2) == "ab" && s.Numbers(&row, 3)[0] == 1`, row)
	}
	if got := s.Numbers(&row, 4); !reflect.DeepEqual(got, []float64{1, -2.5, 30}) {
		t.Errorf("embedding %v; want reflect.DeepEqual(got, []float64{1, -2.5, 30})", got)
	}
}

func formatFields(fields []problem.Field) string {
	var out []string
	for _, f := range fields {
		out = append(out, strings.Join(f.Loc, ".")+": "+f.Msg)
	}
	return strings.Join(out, "; ")
}

func TestBodiesThatAreNoRequest(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                               "body: the body is empty; send a JSON object",
		`   `:                            "body: the body is empty; send a JSON object",
		`null`:                           "body: expected a JSON object, got null",
		`[]`:                             "body: expected a JSON object, got a list",
		`{"features": {}`:                "body: the JSON ends too early",
		`{"features": {}} {}`:            "body: the body has more data after its JSON value",
		`{"features": {}} x`:             "body: the body has more data after its JSON value",
		`{}`:                             "body.features: this member is missing",
		`{"features": null}`:             "body.features: expected an object of column names and values, got null",
		`{"features": [1]}`:              "body.features: expected an object of column names and values, got a list",
		`{"features": {}, "extra": 1}`:   "body.extra: this member is unknown",
		`{"features": {}, "alias": 1}`:   "body.alias: expected a string, got a number",
		`{"features": {}, "version": 3}`: "body.version: expected a string, got a number",
		`{"features": {}, "probabilities": "yes"}`:     "body.probabilities: expected true or false, got a string",
		`{"features": {"a": 1, "a": 2}}`:               "body.features.a: this name is there twice",
		`{"features": {"a": 1, "\u0061": 2}}`:          "body.features.a: this name is there twice",
		`{"features": {"v": [{"x": 1, "x": 2}]}}`:      "body.features.v.0.x: this name is there twice",
		`{"features": {}, "features": {}}`:             "body.features: this name is there twice",
		`{"features": {"a": NaN}}`:                     `body.features.a: not JSON at byte 19: invalid character 'N' at start of value`,
		`{"features": {"a": -Infinity}}`:               `body.features.a: not JSON at byte 20: invalid character 'I' in number (expecting digit)`,
		`{"features": {"a": 01}}`:                      `body.features: not JSON at byte 20: invalid character '1' after object value (expecting ',' or '}')`,
		"{\"features\": {\"a\xff\": 1}}":               "",
		`{'features': {}}`:                             "",
		strings.Repeat(`{"features":`, 20000):          "",
		`{"features": ` + strings.Repeat(`[`, 20000):   "",
		`{"features": {"a": "\ud800"}}`:                "",
		`{"features": {"a": 1,}}`:                      "",
		`{"features": {}, "alias": {"features": [{}]}`: "body: the JSON ends too early",
	} {
		_, faults := ParsePredict([]byte(body), &Object{})
		if len(faults) == 0 {
			t.Errorf("%.60s: accepted; want len(faults) != 0", body)
			continue
		}
		if got := formatFields(faults); want != "" && got != want {
			t.Errorf("%.60s:\n got %s\nwant %s", body, got, want)
		}
	}
}

func TestWrongFeatures(t *testing.T) {
	t.Parallel()
	s := testSchema(t)
	base := map[string]string{"procs": "1", "hour": "2", "queue": `"q"`, "urgent": "false", "embedding": "[1,2,3]"}
	for _, c := range []struct{ column, value, invalid, mismatch string }{
		{"procs", `"4"`, "procs: expected a number, got a string", ""},
		{"procs", `null`, "procs: expected a number, got null", ""},
		{"procs", `true`, "procs: expected a number, got a boolean", ""},
		{"procs", `[1]`, "procs: expected a number, got a list", ""},
		{"procs", `{"a":{"b":"}"}}`, "procs: expected a number, got an object", ""},
		{"procs", `1e999`, "procs: the number is too large for the model", ""},
		{"procs", `1e39`, "procs: the number is too large for the model", ""},
		{"procs", `1` + strings.Repeat("0", 400), "procs: the number is too large for the model", ""},
		{"procs", `-12345678901234567890123`, "", ""},
		{"procs", `1e-999`, "", ""},
		{"hour", `1.5`, "hour: expected a whole number", ""},
		{"hour", `9223372036854775807`, "", ""},
		{"hour", `9223372036854775808`, "hour: the number is too large for the model", ""},
		{"hour", `"7"`, "hour: expected a whole number, got a string", ""},
		{"queue", `7`, "queue: expected a string, got a number", ""},
		{"queue", `"a\u0000b"`, "queue: a text must not contain a NUL character", ""},
		{"urgent", `1`, "urgent: expected true or false, got a number", ""},
		{"embedding", `1`, "embedding: expected a list of 3 numbers, got a number", ""},
		{"embedding", `[1,2]`, "", "embedding: length 2, want 3"},
		{"embedding", `[]`, "", "embedding: length 0, want 3"},
		{"embedding", `[1,2,3,4]`, "", "embedding: length 4, want 3"},
		{"embedding", `[1,null,3]`, "embedding.1: expected a number, got null", ""},
		{"embedding", `[1,[2],3,4]`, "embedding.1: expected a number, got a list", "embedding: length 4, want 3"},
		{"new", `{"deep": [1, "]"]}`, "", "new: unexpected"},
		{"procs", "", "", "procs: missing"},
	} {
		parts := []string{}
		for name, value := range base {
			if name != c.column {
				parts = append(parts, fmt.Sprintf("%q : %s", name, value))
			}
		}
		if c.value != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", c.column, c.value))
		}
		p, faults := ParsePredict([]byte(`{"features":{`+strings.Join(parts, " , ")+"}}"), &Object{})
		if faults != nil {
			t.Errorf("%s=%.40s: %s; want faults == nil", c.column, c.value, formatFields(faults))
			continue
		}
		f := Fill(p.Features, s, &schema.Row{})
		trim := func(fields []problem.Field) string {
			return strings.ReplaceAll(formatFields(fields), "body.features.", "")
		}
		if got := trim(f.Invalid); got != c.invalid {
			t.Errorf("%s=%.40s: invalid %q, want %q", c.column, c.value, got, c.invalid)
		}
		if got := trim(f.Mismatch); got != c.mismatch {
			t.Errorf("%s=%.40s: mismatch %q, want %q", c.column, c.value, got, c.mismatch)
		}
	}
}

func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"features":{`)
	for i := range 10000 {
		fmt.Fprintf(&b, `"x%d":1,`, i)
	}
	b.WriteString(`"y":1}}`)
	p, faults := ParsePredict([]byte(b.String()), &Object{})
	if faults != nil {
		t.Fatal(formatFields(faults), "want faults == nil")
	}
	if f := Fill(p.Features, testSchema(t), &schema.Row{}); len(f.Mismatch) != maxFaults {
		t.Errorf("%d faults told, want %d", len(f.Mismatch), maxFaults)
	}
}

func TestPipeline(t *testing.T) {
	t.Parallel()
	embedding := "[" + strings.Repeat("0.5,", EmbeddingSize-1) + "1]"
	flat := `{"embedding":` + embedding + `,"num_nodes":4,"user_id":17,"job_id":"j1","alias":"Canary"}`
	p, faults := ParsePipeline([]byte(flat))
	if faults != nil {
		t.Fatal(formatFields(faults), "want faults == nil")
	}
	if p.JobID != "j1" || p.Alias != "Canary" || string(p.NumNodes) != "4" || string(p.UserID) != "17" {
		t.Errorf(`parsed %+v; want p.JobID == "j1" && p.Alias == "Canary" && string(p.NumNodes) == "4" && string(p.UserID) == "17"`, p)
	}
	nested, faults := ParsePipeline([]byte(`{"features":` + flat + `,"model_name":"jpcp","job_id":9}`))
	if faults != nil {
		t.Fatal(formatFields(faults), "want faults == nil")
	}
	if nested.JobID != "9" || nested.Model != "jpcp" || nested.Embedding == nil {
		t.Errorf(`parsed %+v; want nested.JobID == "9" && nested.Model == "jpcp" && nested.Embedding != nil`, nested)
	}
	got := string(p.Features(func(name string) (bool, bool) { return name == "user_id", name != "num_nodes" }))
	if want := `{"embedding":` + embedding + `,"user_id":"17"}`; got != want {
		t.Errorf("features %.40s…, want %.40s…", got, want)
	}
	if got := string((&Pipeline{UserID: []byte(`"17"`)}).Features(func(string) (bool, bool) { return false, true })); got != `{"user_id":17}` {
		t.Errorf("features %s; want `{\"user_id\":17}`", got)
	}
	for body, want := range map[string]string{
		`{}`:                                "body.embedding: this member is missing; body.num_nodes: this member is missing",
		`{"features":{}}`:                   "body.features.embedding: this member is missing; body.features.num_nodes: this member is missing",
		`{"features":7}`:                    "body.features: expected an object, got a number",
		`{"embedding":[1],"num_nodes":0}`:   "body.embedding: length 1, want 384; body.num_nodes: expected a whole number of at least 1",
		`{"embedding":"x","num_nodes":1.5}`: "body.embedding: expected a list of 384 numbers, got a string; body.num_nodes: expected a whole number of at least 1",
		`{"embedding":` + embedding + `}`:   "body.num_nodes: this member is missing",
		`{"embedding":` + embedding + `,"num_nodes":1,"nodes":1}`:    "body.nodes: this member is unknown",
		`{"embedding":` + embedding + `,"num_nodes":1,"user_id":[]}`: "body.user_id: expected a string or a number, got a list",
	} {
		if _, faults := ParsePipeline([]byte(body)); formatFields(faults) != want {
			t.Errorf("%.50s: %s, want %s", body, formatFields(faults), want)
		}
	}
}

// FuzzPredict: an accepted body is JSON to encoding/json too, with the same values in the row.
func FuzzPredict(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"features":{"procs":1}}`))
	f.Add([]byte(`{"features":{"embedding":[1,2,3,"x",{"a":[]}],"queue":"\\\"","a":"}"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := testSchema(t)
		p, faults := ParsePredict(body, &Object{})
		if faults != nil {
			return
		}
		var std struct{ Features map[string]json.RawMessage }
		if err := json.Unmarshal(body, &std); err != nil {
			t.Fatalf("accepted, but encoding/json says %v", err)
		}
		var row schema.Row
		got := Fill(p.Features, s, &row)
		var values map[string]any
		if err := json.Unmarshal(p.Features, &values); err != nil {
			if got.Invalid == nil && got.Mismatch == nil {
				t.Fatalf("filled a row from what encoding/json refuses: %v; want (got.Invalid != nil || got.Mismatch != nil)", err)
			}
			return
		}
		if got.Invalid != nil || got.Mismatch != nil {
			return
		}
		if len(values) != len(s.Columns) {
			t.Fatalf("%d columns given, %d wanted, no fault", len(values), len(s.Columns))
		}
		if v, ok := values["procs"].(float64); !ok || v != s.Numbers(&row, 0)[0] {
			t.Fatalf("procs is %v, the row has %v; want ok && v == s.Numbers(&row, 0)[0]", values["procs"], s.Numbers(&row, 0))
		}
		if v, ok := values["queue"].(string); !ok || v != *s.Text(&row, 2) {
			t.Fatalf("queue is %q, the row has %q; want ok && v == *s.Text(&row, 2)", values["queue"], *s.Text(&row, 2))
		}
		for i, v := range values["embedding"].([]any) {
			if v.(float64) != s.Numbers(&row, 4)[i] {
				t.Fatalf("embedding is %v, the row has %v; want v.(float64) == s.Numbers(&row, 4)[i]", values["embedding"], s.Numbers(&row, 4))
			}
		}
	})
}

func BenchmarkParseAndFill(b *testing.B) {
	s := testSchema(b)
	body := []byte(good)
	var o Object
	var row schema.Row
	b.ReportAllocs()
	for b.Loop() {
		p, faults := ParsePredict(body, &o)
		if faults != nil {
			b.Fatal(faults, "want nil")
		}
		Fill(p.Features, s, &row)
	}
}

// An id is stored with the prediction, so it is bounded and has no character that the database refuses.
func TestIDsAreBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id   string // JSON
		want string
	}{
		"longest": {`"` + strings.Repeat("a", 255) + `"`, ""},
		"long":    {`"` + strings.Repeat("a", 256) + `"`, "at most 255 bytes"},
		"NUL":     {`"a\u0000b"`, "no NUL"},
		"digits":  {strings.Repeat("1", 256), "at most 255 bytes"},
	} {
		_, faults := ParsePipeline([]byte(`{"job_id": ` + c.id + `}`))
		if got := formatFields(faults); strings.Contains(got, "job_id") != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: pipeline faults %q, want job_id: %q", name, got, c.want)
		}
		if name == "digits" { // the protocol's ids are texts
			continue
		}
		_, faults = ParseInfer([]byte(`{"id": ` + c.id + `, "inputs": []}`))
		if got := formatFields(faults); strings.Contains(got, "id:") && c.want == "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: infer faults %q, want id: %q", name, got, c.want)
		}
	}
}
