package localloop_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/looptest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/udiff"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/verification"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

const (
	answer = "attempt-1/candidate/answer.json"
	patch  = "attempt-1/candidate/change.patch"
	stdout = "attempt-1/candidate/logs/stdout.txt"
)

// verdict is the outcome of the first attempt: the status of each check, the
// recommendation, and the text of one finding.
type verdict struct {
	checks         string // in order: p passed, f failed, e could not be done
	recommendation string
	finding        string
}

func checkVerdict(t *testing.T, r *verification.Result, want verdict) {
	t.Helper()
	if r == nil {
		t.Fatal("the attempt was not verified")
	}
	var got strings.Builder
	for _, c := range r.Checks {
		got.WriteByte(c.Status[0])
		if !c.Required {
			t.Errorf("check %s is not required; want c.Required", c.ID)
		}
	}
	if got.String() != want.checks || r.DecisionSupport.Recommendation != want.recommendation {
		t.Errorf("checks %s, %s; want %s, %s; %v", got.String(), r.DecisionSupport.Recommendation, want.checks, want.recommendation, r.Findings)
	}
	has := slices.ContainsFunc(r.Findings, func(f verification.Finding) bool { return strings.Contains(f.Message, want.finding) })
	if want.finding == "" && len(r.Findings) > 0 || want.finding != "" && !has {
		t.Errorf("findings %v, want %q", r.Findings, want.finding)
	}
}

func TestJSONVerifier(t *testing.T) {
	t.Parallel()
	set := looptest.Set
	type change = func(*looptest.Loop)
	content := func(text string) change { return func(l *looptest.Loop) { l.Files[answer] = text } }
	status := func(s string) change { return func(l *looptest.Loop) { set(l.Manifests[0], "status", s) } }
	for _, c := range []struct {
		name   string
		change change
		want   verdict
	}{
		{"as required", func(*looptest.Loop) {}, verdict{"ppp", "accept_candidate", ""}},
		{"other spelling", content("\ufeff\t{\"answer\":42,\n\"unit\":\"no\\u006ee\"}"), verdict{"ppp", "accept_candidate", ""}},
		{"another value", content(`{"answer":43,"unit":"none"}`), verdict{"ppf", "reject_candidate", "not the required document"}},
		{"a float for an integer", content(`{"answer":42.0,"unit":"none"}`), verdict{"ppf", "reject_candidate", "not the required document"}},
		{"a key more", content(`{"answer":42,"unit":"none","x":1}`), verdict{"ppf", "reject_candidate", "not the required document"}},
		{"a key twice", content(`{"answer":42,"answer":42,"unit":"none"}`), verdict{"ppf", "reject_candidate", "duplicate_key"}},
		{"no JSON", content(`answer: 42`), verdict{"ppf", "reject_candidate", "is no JSON document"}},
		{"empty", content(""), verdict{"ppf", "reject_candidate", "is no JSON document"}},
		{"not UTF-8", content("\"\xff\""), verdict{"ppf", "reject_candidate", "invalid_utf8"}},
		{"as deep as a document goes", content(strings.Repeat("[", 512) + strings.Repeat("]", 512)), verdict{"ppf", "reject_candidate", "too deep"}},
		{"deeper", func(l *looptest.Loop) {
			l.Files[answer] = strings.Repeat("[", 20000)
			set(l.Control, "max_candidate_bytes", 20000)
		}, verdict{"ppf", "reject_candidate", "too_deep"}},
		{"too large by a byte", content(`{"answer":42,"unit":"none"}` + strings.Repeat(" ", 4096-26)), verdict{"ppf", "reject_candidate", "4097 bytes; 4096 are allowed"}},
		{"as large as allowed", content(`{"answer":42,"unit":"none"}` + strings.Repeat(" ", 4096-27)), verdict{"ppp", "accept_candidate", ""}},
		{"changed after it was reported", func(l *looptest.Loop) {
			l.Seal()
			l.Files[answer] += "\n"
		}, verdict{"fpp", "reject_candidate", "but the manifest says"}},
		{"absent", func(l *looptest.Loop) {
			l.Seal()
			delete(l.Files, answer)
		}, verdict{"efe", "reject_candidate", "does not exist"}},
		{"absent where it may be", func(l *looptest.Loop) {
			l.Seal()
			delete(l.Files, answer)
			set(l.Control, "allowed_files", canon.Array{"logs/stdout.txt"})
		}, verdict{"epe", "insufficient_evidence", "does not exist"}},
		{"a file more", func(l *looptest.Loop) { l.Files["attempt-1/candidate/extra"] = "" }, verdict{"pfp", "reject_candidate", "extra is not among the allowed files"}},
		{"a hidden file more", func(l *looptest.Loop) { l.Files["attempt-1/candidate/a/.b/c"] = "" }, verdict{"pfp", "reject_candidate", "a/.b/c is not among"}},
		{"a file less", func(l *looptest.Loop) { delete(l.Files, stdout) }, verdict{"pfp", "reject_candidate", "logs/stdout.txt is absent"}},
		{"too deep to list", func(l *looptest.Loop) {
			l.Files["attempt-1/candidate/"+strings.Repeat("d/", 66)+"f"] = ""
		}, verdict{"pep", "insufficient_evidence", "folders deep"}},
		{"worker failed", status("failed"), verdict{"ppp", "escalate", ""}},
		{"worker timed out", status("timeout"), verdict{"ppp", "escalate", ""}},
		{"worker failed, candidate too", func(l *looptest.Loop) {
			status("error")(l)
			content("1")(l)
		}, verdict{"ppf", "reject_candidate", "not the required document"}},
		{"worker cancelled, candidate gone", func(l *looptest.Loop) {
			status("cancelled")(l)
			l.Seal()
			delete(l.Files, answer)
			set(l.Control, "allowed_files", canon.Array{"logs/stdout.txt"})
		}, verdict{"epe", "insufficient_evidence", "does not exist"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, l := range []*looptest.Loop{looptest.JSON(), looptest.JSONPlan()} {
				c.change(l)
				r := runLoop(t, l).Results["attempt-1"]
				checkVerdict(t, r, c.want)
				if r != nil && (r.Verifier.Adapter != "deterministic-json-verifier" || r.Verifier.Version != "0.1") {
					t.Errorf(`%+v; want (r == nil || !r.Verifier.Adapter != "deterministic-json-verifier" || r.Verifier.Version != "0.1")`, r.Verifier)
				}
			}
		})
	}
}

// The verifier's name is the policy's constant or the plan's own.
func TestVerifierIDs(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]*looptest.Loop{"svc-local-verifier": looptest.JSON(), "reviewer": looptest.JSONPlan()} {
		if v := runLoop(t, l).Report.Attempts[0].Verifier; v.ID != want {
			t.Error(v, "want v.ID ==", want)
		}
	}
}

// Every observation is a digest of what anyone can see and compute again.
func TestJSONEvidence(t *testing.T) {
	t.Parallel()
	l := looptest.JSON()
	out := runLoop(t, l)
	required := map[string]any{"answer": 42, "unit": "none"}
	files := []string{"answer.json", "logs/stdout.txt"}
	want := []verification.Evidence{
		{ID: "candidate-artifact-hash", Digest: canon.DigestBytes([]byte(l.Files["attempt-2/candidate/answer.json"]))},
		{ID: "candidate-scope-observation", Digest: canon.Digest(map[string]any{"allowed_files": files, "observed_files": files})},
		{ID: "acceptance-observation", Digest: canon.Digest(map[string]any{"expected": required, "observed": map[string]any{"answer": 41, "unit": "none"}, "parse_error": nil})},
	}
	r := out.Results["attempt-2"]
	if !slices.Equal(r.Evidence, want) {
		t.Errorf("%v\nwant %v", r.Evidence, want)
	}
	semantic := canon.Digest(map[string]any{
		"status": "failed", "recommendation": "reject_candidate",
		"checks": []any{
			[]any{"artifact-digest", "passed", []string{"candidate-artifact-hash"}},
			[]any{"candidate-scope", "passed", []string{"candidate-scope-observation"}},
			[]any{"independent-acceptance", "failed", []string{"acceptance-observation"}},
		},
		"evidence": []any{[]any{want[0].ID, want[0].Digest}, []any{want[1].ID, want[1].Digest}, []any{want[2].ID, want[2].Digest}},
	})
	if r.SemanticDigest() != semantic || out.Report.Attempts[1].Verifier.VerificationSemanticDigest != semantic || out.Record.Attempts[1].Verification.SemanticDigest != semantic {
		t.Errorf("semantic digest %s, want %s", r.SemanticDigest(), semantic)
	}
}

func TestPatchVerifier(t *testing.T) {
	t.Parallel()
	set := looptest.Set
	type change = func(*looptest.Loop)
	content := func(text string) change { return func(l *looptest.Loop) { l.Files[patch] = text } }
	replace := func(old, new string) change {
		return func(l *looptest.Loop) { l.Files[patch] = strings.ReplaceAll(l.Files[patch], old, new) }
	}
	forbids := func(globs ...string) change {
		list := canon.Array{}
		for _, g := range globs {
			list = append(list, g)
		}
		return func(l *looptest.Loop) { set(l.Unit, "constraints.forbidden_paths", list) }
	}
	reject := func(finding string) verdict { return verdict{"pf", "reject_candidate", finding} }
	accept := verdict{"pp", "accept_candidate", ""}
	all := []string{"0.2", "0.3", "0.4"}
	for _, c := range []struct {
		name   string
		plans  []string
		change change
		want   verdict
	}{
		{"as planned", all, func(*looptest.Loop) {}, accept},
		{"no patch", all, content("hello\n"), reject("is no patch of text files: line 1")},
		{"empty", all, content(""), reject("the patch is empty")},
		{"binary", all, content("diff --git a/src/answer.txt b/src/answer.txt\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 0\n"), reject("binary content is not allowed")},
		{"zero byte", all, replace("42", "4\x002"), reject("a zero byte")},
		{"huge", all, content(strings.Repeat("x", udiff.MaxBytes) + "\n"), reject("2097153 bytes; 2097152 are allowed")},
		{"not allowed", all, replace("src/answer.txt", "lib/answer.txt"), reject("lib/answer.txt is not among the allowed paths")},
		{"not writable", all, func(l *looptest.Loop) { set(l.Unit, "permissions.filesystem_write", canon.Array{"docs/**"}) }, reject("not among the paths that may be written")},
		{"forbidden", all, func(l *looptest.Loop) {
			set(l.Unit, "constraints.forbidden_paths", canon.Array{"src/answer.*"})
		}, reject("among the forbidden paths")},
		{"a forbidden folder", all, forbids("src"), reject("src/answer.txt is among the forbidden paths")},
		{"a forbidden folder with a slash", all, forbids("src/"), reject("src/answer.txt is among the forbidden paths")},
		{"a forbidden folder of several", all, forbids("{lib,s?c}"), reject("src/answer.txt is among the forbidden paths")},
		{"folders by a wildcard with a slash", all, forbids("*/"), reject("src/answer.txt is among the forbidden paths")},
		{"a forbidden folder at any depth", all, forbids("**/src"), reject("src/answer.txt is among the forbidden paths")},
		{"files of the top folder", all, forbids("*"), accept},
		{"a name that begins alike", all, forbids("sr", "src/answer", "answer.txt/"), accept},
		{"nothing is allowed", all, func(l *looptest.Loop) { set(l.Unit, "constraints.allowed_paths", canon.Array{}) }, reject("not among the allowed paths")},
		{"another file", all, replace("src/answer.txt", "src/other.txt"), reject("does not change src/answer.txt")},
		{"a file more", all, func(l *looptest.Loop) {
			l.Files[patch] += strings.ReplaceAll(l.Files[patch], "answer.txt", "other.txt")
		}, reject("changes src/other.txt, which the plan does not name")},
		{"another line", all, replace("is 42", "is 43"), reject("src/answer.txt")},
		{"a line more", []string{"0.2"}, content(strings.NewReplacer("+1,3 @@", "+1,4 @@", "+The answer", "+More.\n+The answer").Replace(looptest.GoodPatch)), reject("not exactly those")},
		{"a line more is no harm", []string{"0.3"}, content(strings.NewReplacer("+1,3 @@", "+1,4 @@", "+The answer", "+More.\n+The answer").Replace(looptest.GoodPatch)), accept},
		{"a line removed", []string{"0.2"}, content(looptest.ChangePatch), reject("removes 1 lines")},
		{"a line removed is no harm", []string{"0.3"}, content(looptest.ChangePatch), accept},
		{"nothing removed", []string{"0.4"}, content(looptest.GoodPatch), reject(`removed from src/answer.txt has "41"`)},
		{"another removed", []string{"0.4"}, replace("is 41", "is 40"), reject(`removed from src/answer.txt has "41"`)},
		{"changed after it was reported", all, func(l *looptest.Loop) {
			l.Seal()
			l.Files[patch] = strings.Replace(l.Files[patch], "1111111", "1111112", 1)
		}, reject("but the manifest says")},
		{"absent", all, func(l *looptest.Loop) {
			l.Seal()
			delete(l.Files, patch)
		}, verdict{"pe", "insufficient_evidence", "does not exist"}},
		{"log changed", all, func(l *looptest.Loop) {
			l.Seal()
			l.Files[stdout] += "x"
		}, reject("The log logs/stdout.txt has the digest")},
		{"log absent", all, func(l *looptest.Loop) {
			l.Seal()
			delete(l.Files, stdout)
		}, verdict{"pe", "insufficient_evidence", "A log cannot be read"}},
		{"log without digest", []string{"0.3", "0.4"}, func(l *looptest.Loop) {
			set(l.Manifests[0], "logs", canon.Array{canon.MustFrom(map[string]any{"type": "stdout", "locator": "none"})})
		}, accept},
		{"required log without digest", []string{"0.2"}, func(l *looptest.Loop) {
			set(l.Manifests[0], "logs", canon.Array{canon.MustFrom(map[string]any{"type": "stdout", "locator": "logs/stdout.txt"})})
		}, reject("no log of type stdout")},
		{"required log absent", []string{"0.2"}, func(l *looptest.Loop) { set(l.Manifests[0], "logs", canon.Array{}) }, reject("no log of type stdout")},
		{"worker failed", all, func(l *looptest.Loop) { set(l.Manifests[0], "status", "failed") }, verdict{"pp", "escalate", ""}},
		{"worker failed, patch wrong", all, func(l *looptest.Loop) {
			set(l.Manifests[0], "status", "timeout")
			content("x\n")(l)
		}, reject("no patch")},
	} {
		for _, version := range c.plans {
			t.Run(c.name+" "+version, func(t *testing.T) {
				t.Parallel()
				l := looptest.Patch(version)
				c.change(l)
				r := runLoop(t, l).Results["attempt-1"]
				checkVerdict(t, r, c.want)
				want := map[string]string{"0.2": "0.1.1", "0.3": "0.2.0", "0.4": "0.3.0"}[version]
				if r != nil && (r.Verifier.Version != want || r.Checks[0].ID != "result-manifest-schema" || r.Checks[1].ID != "independent-review") {
					t.Errorf(`%+v %+v; want (r == nil || !r.Verifier.Version != want || r.Checks[0].ID != "result-manifest-schema" || r.Checks[1].ID != "independent-review")`, r.Verifier, r.Checks)
				}
			})
		}
	}
}

func TestPatchEvidence(t *testing.T) {
	t.Parallel()
	l := looptest.Patch("0.2")
	r := runLoop(t, l).Results["attempt-1"]
	var ids []string
	for _, e := range r.Evidence {
		ids = append(ids, e.ID)
	}
	want := []string{"result-manifest-canonical", "candidate-patch-hash", "log-integrity-observation", "patch-scope-observation", "patch-semantic-observation", "worker-status-observation"}
	if !slices.Equal(ids, want) {
		t.Error(ids, "want slices.Equal(ids, want)")
	}
	if r.Evidence[0].Digest != canon.Digest(l.Manifests[0]) || r.Evidence[1].Digest != canon.DigestBytes([]byte(l.Files[patch])) {
		t.Error(r.Evidence, "want r.Evidence[0].Digest == canon.Digest(l.Manifests[0]) && r.Evidence[1].Digest == canon.DigestBytes([]byte(l.Files[patch]))")
	}
}

// A candidate can break the rules any number of times; the reported findings are
// limited.
func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	l := looptest.JSON()
	for i := range 200 {
		l.Files["attempt-1/candidate/"+strings.Repeat("n", 1+i)] = ""
	}
	r := runLoop(t, l).Results["attempt-1"]
	if n := len(r.Findings); n != 21 || r.Findings[20].Message != "There are 180 more findings." {
		t.Errorf(`%d findings; want n == 21 && r.Findings[20].Message == "There are 180 more findings."`, n)
	}
}

// No link is followed, wherever it points, in whatever place.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, link, target string
		want               string
	}{
		{"the config", "config.json", "real.json", "config.json is a symbolic link"},
		{"the work unit", "work-unit.json", "real.json", "work-unit.json is a symbolic link"},
		{"the policy", "policy.json", "real.json", "policy.json is a symbolic link"},
		{"a manifest", "attempt-1/result-manifest.json", "real.json", "attempt-1/result-manifest.json is a symbolic link"},
		{"a folder on the way", "attempt-1", "real", "attempt-1 is a symbolic link"},
		{"a candidate", "attempt-1/candidate", "real", "attempt-1/candidate is a symbolic link"},
		{"an artifact", answer, "real.json", "answer.json is a symbolic link"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			config := looptest.JSON().Write(t, dir)
			link := filepath.Join(dir, filepath.FromSlash(c.link))
			real := filepath.Join(filepath.Dir(link), c.target)
			if err := os.Rename(link, real); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(c.target, link); err != nil {
				t.Fatal(err)
			}
			s, err := tryRun(t, config)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Error(err, "want strings.Contains(err.Error(), c.want)")
				}
				return
			}
			a := s.Report.Attempts[0]
			if a.Error == nil {
				found := s.Results["attempt-1"].Findings
				if !slices.ContainsFunc(found, func(f verification.Finding) bool { return strings.Contains(f.Message, c.want) }) || a.EvidenceState != "rejected" {
					t.Errorf(`%s %v; want slices.ContainsFunc(found, func(f verification.Finding) bool { return strings.Contains(f.Message, c.want) }) && a.EvidenceState == "rejected"`, a.EvidenceState, found)
				}
			} else if !strings.Contains(*a.Error, c.want) {
				t.Error(*a.Error, "want strings.Contains(*a.Error, c.want)")
			}
			if b := s.Report.Attempts[1]; b.State != "verified" {
				t.Error(b.State, `want "verified"`)
			}
		})
	}
}

// A link in a candidate is a thing that it may not hold, even if nothing names it.
func TestLinkInACandidate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := looptest.JSON().Write(t, dir)
	if err := os.Symlink("/etc", filepath.Join(dir, "attempt-1", "candidate", "etc")); err != nil {
		t.Fatal(err)
	}
	checkVerdict(t, runAt(t, config).Results["attempt-1"], verdict{"pfp", "reject_candidate", "etc is no regular file"})
}

// A pipe in the place of a file would hold the reader for ever.
func TestPipesAreNotOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := looptest.JSON().Write(t, dir)
	makePipe(t, filepath.Join(dir, filepath.FromSlash(answer)))
	checkVerdict(t, runAt(t, config).Results["attempt-1"], verdict{"efe", "reject_candidate", "is no regular file"})
}
