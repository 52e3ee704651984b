package localloop_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/control"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/looptest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/manifest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/verification"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/workunit"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// Whatever a config contains, its paths stay within its folder and its files have
// separate names there; anything else is a fault that names the place.
func FuzzConfig(f *testing.F) {
	for _, l := range looptest.Samples() {
		f.Add([]byte(l.Render()["config.json"]))
	}
	f.Add([]byte(`{"schema_version":"0.1","run_id":"r","work_unit":"../x","verifier_policy":"..","attempts":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := field.Parse(data)
		var c *localloop.Config
		if err == nil {
			c, err = localloop.ReadConfig(doc)
		}
		if err != nil {
			isFault(t, err)
			return
		}
		paths := []string{c.WorkUnit, c.Control}
		files := map[string]bool{}
		for _, a := range c.Attempts {
			if a.Adapter != localloop.FixtureFailure {
				paths = append(paths, a.Manifest, a.CandidateRoot)
			}
			name := a.ResultFile()
			if files[strings.ToLower(name)] || strings.ContainsAny(name, `/\:`) || !filepath.IsLocal(name) {
				t.Fatalf("result file %q; want !files[strings.ToLower(name)] && !strings.ContainsAny(name, `/\\:`) && filepath.IsLocal(name)", name)
			}
			files[strings.ToLower(name)] = true
		}
		for _, p := range paths {
			if !filepath.IsLocal(filepath.FromSlash(p)) || !fs.ValidPath(p) || p == "." {
				t.Fatalf(`path %q; want filepath.IsLocal(filepath.FromSlash(p)) && fs.ValidPath(p) && p != "."`, p)
			}
		}
		if len(c.Attempts) != 2 || c.Digest != canon.Digest(doc) {
			t.Fatalf("%+v; want len(c.Attempts) == 2 && c.Digest == canon.Digest(doc)", c)
		}
	})
}

func isFault(t *testing.T, err error) {
	t.Helper()
	var f *closed.Fault
	if !errors.As(err, &f) || f.Code == "" || f.Detail == "" {
		t.Fatalf(`%v is no fault; want errors.As(err, &f) && f.Code != "" && f.Detail != ""`, err)
	}
}

// Every document of a loop, whatever it contains, is either accepted or refused with
// a fault; an accepted one keeps the digest of the document.
func FuzzDocuments(f *testing.F) {
	for _, l := range []*looptest.Loop{looptest.JSON(), looptest.JSONPlan(), looptest.Patch("0.2"), looptest.Patch("0.3"), looptest.Patch("0.4")} {
		for name, text := range l.Render() {
			if strings.HasSuffix(name, ".json") {
				f.Add([]byte(text))
			}
		}
	}
	f.Add(runLoop(f, looptest.JSON()).Files["verification-result-attempt-1.json"])
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := field.Parse(data)
		if err != nil {
			isFault(t, err)
			return
		}
		digests := []string{}
		if u, err := workunit.Read(parsed); err == nil {
			digests = append(digests, u.Digest)
		} else {
			isFault(t, err)
		}
		if m, err := manifest.Read(parsed); err == nil {
			digests = append(digests, m.Digest)
		} else {
			isFault(t, err)
		}
		for _, read := range []func(canon.Value) (*control.Control, error){control.ReadPolicy, control.ReadPlan} {
			if c, err := read(parsed); err == nil {
				digests = append(digests, c.Digest)
			} else {
				isFault(t, err)
			}
		}
		if r, err := verification.Read(parsed); err == nil {
			if err := r.Check(); err != nil {
				t.Fatalf("a result that was read is refused: %v", err)
			}
		} else {
			isFault(t, err)
		}
		for _, d := range digests {
			if doc, err := canon.Parse(data); err != nil || d != canon.Digest(doc) {
				t.Fatalf("%s is not the digest; want d == canon.Digest(doc)", d)
			}
		}
	})
}

// Whatever the candidate contains, the JSON verifier produces a valid result.
func FuzzCandidate(f *testing.F) {
	for _, seed := range []string{`{"answer":42,"unit":"none"}`, "", "[", "\xff", strings.Repeat("[", 512) + strings.Repeat("]", 512), "1e999", `"\ud800"`} {
		f.Add([]byte(seed))
	}
	l := looptest.JSON()
	f.Fuzz(func(t *testing.T, data []byte) {
		mine := *looptest.JSON()
		mine.Config, mine.Unit = l.Config, l.Unit
		mine.Files[answer] = string(data)
		r := runLoop(t, &mine).Results["attempt-1"]
		if r == nil || r.Check() != nil {
			t.Fatalf("%+v; want r != nil && r.Check() == nil", r)
		}
		doc, err := canon.Parse(data)
		equal := err == nil && field.Equal(doc, canon.MustFrom(map[string]any{"answer": 42, "unit": "none"})) && len(data) <= 4096
		if accepted := r.DecisionSupport.Recommendation == "accept_candidate"; accepted != equal {
			t.Fatalf("accepted %v, equal %v; want accepted == %v", accepted, equal, equal)
		}
	})
}
