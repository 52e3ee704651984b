package field_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

func TestIsPath(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"a", "a/b", "a b/c", ".a", "..a", "...", "a/.b/..c", "é", strings.Repeat("é", field.MaxPath)} {
		if !field.IsPath(s) {
			t.Errorf("%q is refused; want field.IsPath(s)", s)
		}
	}
	for _, s := range []string{
		"", ".", "..", "/", "/a", "a/", "a//b", "./a", "a/.", "a/..", "../a", "a/../b", `a\b`, "C:a", "a:b", "a\nb", "a\x00", "a\x7f", "\xff", strings.Repeat("a", field.MaxPath+1),
	} {
		if field.IsPath(s) {
			t.Errorf("%q is taken; want !field.IsPath(s)", s)
		}
	}
}

func TestGlobs(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"**": true, "src/**/*.go": true, "a?[b-c]": true, "{a,b}/{c,d}/{e,f}/{g,h}": true, `\*`: true, strings.Repeat("a", 256): true, "src/": true, "a..b/.c": true,
		"": false, "/": false, "/src": false, "./src": false, "a//b": false, "a/./b": false, "../a": false, "a/..": false, "[": false, "{a": false, strings.Repeat("{a,b}", 5): false, strings.Repeat("a", 257): false,
	} {
		r := field.NewReader()
		field.CheckGlobs(r, "/globs", []string{s})
		if (r.Fault() == nil) != want {
			t.Errorf("%q: got fault %v, want taken %v", s, r.Fault(), want)
		}
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	parse := func(s string) canon.Value {
		v, err := canon.Parse([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[true]}`, `{"b":[true],"a":1}`, true}, {`1`, `1.0`, false}, {`-0`, `0`, true}, {`-0.0`, `0.0`, false},
		{`"\u0061"`, `"a"`, true}, {`[1,2]`, `[2,1]`, false}, {`null`, `{}`, false}, {`1e2`, `100.0`, true},
	} {
		if field.Equal(parse(c.a), parse(c.b)) != c.want {
			t.Errorf("%s %s; want field.Equal(parse(c.a), parse(c.b)) == %v", c.a, c.b, c.want)
		}
	}
}
