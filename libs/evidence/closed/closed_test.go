package closed_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

var codes = closed.Codes{Missing: "missing", Unknown: "unknown", Root: "root", Shape: "shape", Type: "type", Value: "value"}

func TestTheFirstFaultStays(t *testing.T) {
	t.Parallel()
	doc := canon.MustFrom(map[string]any{"b": map[string]any{"n": 0}, "list": []any{1, "x"}, "s": "text"})
	r := closed.NewReader(codes)
	o := r.Root(doc, "b", "list", "s")
	if !r.OK() || r.Fault() != nil || o.String("s") != "text" || o.Null("s") {
		t.Fatal(r.Fault(), `want r.OK() && r.Fault() == nil && o.String("s") == "text" && !o.Null("s")`)
	}
	if n := o.Object("b", "n").Int("n", 1); n != 0 {
		t.Error("a refused integer is", n, "want 0")
	}
	f := r.Fault()
	if f == nil || f.Code != "value" || f.Path != "/b/n" {
		t.Fatal(f, `want f != nil && f.Code == "value" && f.Path == "/b/n"`)
	}
	// After it nothing is read and nothing else is found.
	o.Array("list", 3, func(canon.Value, string) { t.Error("an element was read after a fault") })
	if o.String("s") != "" || o.Text("s") != "" || o.Bool("s") || o.Value("s") != nil || o.MatchOrNull("s", "c", "x", nil) != nil {
		t.Error("a value was read after a fault")
	}
	o.Object("none", "x").False("y", "c")
	if r.Fault() != f {
		t.Error("a later fault replaced the first")
	}
}

func TestFaultsNameAPlaceAndNoValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		doc  any
		want string
	}{
		{[]any{}, "root at the document: "},
		{map[string]any{}, "missing at /a: "},
		{map[string]any{"a": "x", "z": 1, "b/c": 2}, "unknown at /b~1c: "}, // the first by name, in whatever order they came
		{map[string]any{"a": 7}, "type at /a: "},
		{map[string]any{"a": "hunter2"}, "choice at /a: expected one of x, y"},
	} {
		r := closed.NewReader(codes)
		r.Root(canon.MustFrom(c.doc), "a").OneOf("a", "choice", "x", "y")
		if r.Fault() == nil || !strings.HasPrefix(r.Fault().Error(), c.want) || strings.Contains(r.Fault().Error(), "hunter2") {
			t.Errorf("%v: %v; want %s…", c.doc, r.Fault(), c.want)
		}
	}
	long := closed.Fault{Code: "c", Path: "/" + strings.Repeat("k", 10_000), Detail: "d"}
	if n := len(long.Error()); n > 300 {
		t.Errorf("a long key makes a message of %d bytes; want n <= 300", n)
	}
}

func TestKeysThatMayStandThere(t *testing.T) {
	t.Parallel()
	read := func(doc map[string]any) (closed.Object, *closed.Reader) {
		r := closed.NewReader(codes)
		return r.ObjectWith(canon.MustFrom(doc), "", []string{"id"}, []string{"note", "part"}), r
	}
	o, r := read(map[string]any{"id": "a"})
	if o.Has("note") || o.String("note") != "" || !o.Has("id") || !r.OK() {
		t.Error("a missing note", r.Fault())
	}
	o, r = read(map[string]any{"id": "a", "note": "n", "part": map[string]any{"x": true}})
	if o.String("note") != "n" || !o.ObjectWith("part", nil, []string{"x"}).Bool("x") || !r.OK() {
		t.Error("a note", r.Fault(), `want o.String("note") == "n" && o.ObjectWith("part", nil, []string{"x"}).Bool("x") && r.OK()`)
	}
	for want, doc := range map[string]map[string]any{
		"missing": {"note": "n"}, "unknown": {"id": "a", "none": 1}, "type": {"id": "a", "note": nil},
	} {
		o, r := read(doc)
		_ = o.String("id")
		if o.Has("note") {
			_ = o.String("note")
		}
		if f := r.Fault(); f == nil || f.Code != want {
			t.Error(want, f)
		}
	}
}

func TestOpenObjectsAndNumbers(t *testing.T) {
	t.Parallel()
	doc := canon.MustFrom(map[string]any{"id": "a", "own": "kept", "half": 0.5, "whole": 3, "word": "x"})
	open := func() (closed.Object, *closed.Reader) {
		r := closed.NewReader(codes)
		return r.Open(doc, "", "id"), r
	}
	o, r := open()
	if o.Number("half") != 0.5 || o.Number("whole") != 3 || o.Exact("whole") != canon.NewInt(3) || o.Number("none") != 0 || o.Exact("none") != canon.NewInt(0) || !r.OK() {
		t.Error(r.Fault(), `want o.Number("half") == 0.5 && o.Number("whole") == 3 && o.Exact("whole") == canon.NewInt(3) && o.Number("none") == 0 && o.Exact("none") == canon.NewInt(0) && r.OK()`)
	}
	for name, read := range map[string]func(closed.Object){
		"/word":  func(o closed.Object) { o.Number("word") },
		"/half":  func(o closed.Object) { o.Exact("half") },
		"/whole": func(o closed.Object) { o.Text("whole") },
	} {
		o, r := open()
		read(o)
		if f := r.Fault(); f == nil || f.Code != "type" || f.Path != name {
			t.Error(name, f, `want f != nil && f.Code == "type" && f.Path == name`)
		}
	}
	r = closed.NewReader(codes)
	if r.Open(canon.Array{}, "", "id"); r.Fault() == nil || r.Fault().Code != "root" {
		t.Error(r.Fault(), `want r.Fault() != nil && r.Fault().Code == "root"`)
	}
	r = closed.NewReader(codes)
	if r.Open(canon.NewObject(), "/x", "id"); r.Fault() == nil || r.Fault().Code != "missing" {
		t.Error(r.Fault(), `want r.Fault() != nil && r.Fault().Code == "missing"`)
	}
	r = closed.NewReader(codes)
	huge, _ := canon.Parse([]byte(`{"n":1` + strings.Repeat("0", 400) + `}`))
	if r.Open(huge, "").Number("n"); r.Fault() == nil || r.Fault().Code != "value" {
		t.Error(r.Fault(), `want r.Fault() != nil && r.Fault().Code == "value"`)
	}
}
