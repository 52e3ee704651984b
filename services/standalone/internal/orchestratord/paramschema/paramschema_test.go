package paramschema

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const flow = `{"type":"object","required":["model_name"],"properties":{
 "model_name":{"type":"string"},"is_dummy":{"type":"boolean"},
 "nested":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"object","properties":{"depth":{"type":"integer","maximum":9}}}}}`

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ schema, parameters, field, says string }{
		{flow, `{"model_name":"JPCP","extra":1}`, "-", ""},
		{flow, `{}`, "", "model_name"},
		{flow, `{"model_name":1}`, "model_name", "string"},
		{flow, `{"model_name":"a","nested":{"depth":10}}`, "nested.depth", "9"},
		{``, `{"anything":true}`, "-", ""},
		{`null`, `{}`, "-", ""},
		{`{}`, `{"x":[1]}`, "-", ""},
	} {
		s, err := Compile(json.RawMessage(tc.schema), false)
		if err != nil {
			t.Fatalf("%s: %v", tc.schema, err)
		}
		err = s.Check(json.RawMessage(tc.parameters))
		if tc.field == "-" {
			if err != nil {
				t.Errorf("%s: %v", tc.parameters, err)
			}
			continue
		}
		var f *Fault
		if !errors.As(err, &f) || f.Field != tc.field || !strings.Contains(f.Reason, tc.says) {
			t.Errorf("%s: %v, want field %q and %q", tc.parameters, err, tc.field, tc.says)
		}
	}
	s, err := Compile(json.RawMessage(flow), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(json.RawMessage(`{}`)); err != nil {
		t.Errorf("partial: %v", err)
	}
	if err := s.Check(json.RawMessage(`{"model_name":1}`)); err == nil {
		t.Error("partial let a wrong type pass")
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`{`, `[]`, `7`, `{"type":"nonsense"}`, `{"$ref":"#/nowhere"}`,
		`{"$ref":"file:///etc/hostname"}`, `{"$ref":"https://example.com/x.json"}`, `{"properties":{"a":{"pattern":"("}}}`,
	} {
		if _, err := Compile(json.RawMessage(bad), false); err == nil {
			t.Errorf("%s compiled; want an error", bad)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(flow), []byte(`{"model_name":"a"}`))
	f.Fuzz(func(t *testing.T, schema, parameters []byte) {
		s, err := Compile(schema, false)
		if err == nil {
			_ = s.Check(parameters) // must not panic
		}
	})
}
