package localloop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/looptest"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/report"
)

// tickingClock returns a later instant each time, so that no two results have the same
// times.
func tickingClock() func() time.Time {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time {
		now = now.Add(1500 * time.Millisecond)
		return now
	}
}

func openSource(t testing.TB, config string) *localloop.Source {
	t.Helper()
	s, err := localloop.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func runAt(t testing.TB, config string) *localloop.Outcome {
	t.Helper()
	out, err := openSource(t, config).Run(t.Context(), localloop.Options{Now: tickingClock()})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func runLoop(t testing.TB, l *looptest.Loop) *localloop.Outcome {
	t.Helper()
	return runAt(t, l.Write(t, t.TempDir()))
}

func removeKey(doc *canon.Object, key string) { doc.Delete(key) }

// Every state of an attempt, with each way into it. The first attempt is broken; the
// second always goes through as if it were alone.
func TestStatesOfAnAttempt(t *testing.T) {
	t.Parallel()
	set := looptest.Set
	bundle := func(l *looptest.Loop) { set(l.Config, "attempts.0.worker_adapter", "result-bundle") }
	for _, c := range []struct {
		name   string
		change func(*looptest.Loop)
		state  string
		text   string
	}{
		{"fixture failure", func(l *looptest.Loop) {
			set(l.Config, "attempts.0", canon.MustFrom(map[string]any{"attempt_id": "attempt-1", "worker_adapter": "fixture-failure", "failure": "No memory."}))
		}, "worker_error", "No memory."},
		{"no manifest", func(l *looptest.Loop) { l.Manifests[0] = nil }, "result_manifest_error", "attempt-1/result-manifest.json does not exist"},
		{"manifest is no JSON", func(l *looptest.Loop) { l.Raw["attempt-1/result-manifest.json"] = "{" }, "result_manifest_error", "is no result manifest: invalid_json"},
		{"manifest is no object", func(l *looptest.Loop) { l.Raw["attempt-1/result-manifest.json"] = "[]" }, "result_manifest_error", "not_an_object"},
		{"manifest too large", func(l *looptest.Loop) {
			l.Raw["attempt-1/result-manifest.json"] = strings.Repeat(" ", canon.MaxFile) + "{}"
		}, "result_manifest_error", "is larger than 2097152 bytes"},
		{"manifest without a key", func(l *looptest.Loop) { removeKey(l.Manifests[0], "worker") }, "result_manifest_error", "missing_field at /worker"},
		{"another work unit", func(l *looptest.Loop) { set(l.Manifests[0], "work_unit_id", "work/other") }, "result_manifest_error", "work unit work/other"},
		{"another version", func(l *looptest.Loop) { set(l.Manifests[0], "work_unit_version", 2) }, "result_manifest_error", "version 2"},
		{"another digest", func(l *looptest.Loop) { set(l.Manifests[0], "provenance.work_unit_digest", fixture.Digest("9")) }, "result_manifest_error", fixture.Digest("9")},
		{"artifact that was not made", func(l *looptest.Loop) {
			set(l.Manifests[0], "verification_request.evidence_artifact_ids", canon.Array{"none"})
		}, "result_manifest_error", "/verification_request/evidence_artifact_ids/0"},
		{"bundle without its artifact", func(l *looptest.Loop) {
			bundle(l)
			l.Seal()
			delete(l.Files, "attempt-1/candidate/answer.json")
		}, "result_manifest_error", "artifact candidate: attempt-1/candidate/answer.json does not exist"},
		{"bundle with another artifact", func(l *looptest.Loop) {
			bundle(l)
			l.Seal()
			l.Files["attempt-1/candidate/answer.json"] += " "
		}, "result_manifest_error", "artifact candidate: the file has the digest"},
		{"bundle without its log", func(l *looptest.Loop) {
			bundle(l)
			l.Seal()
			delete(l.Files, "attempt-1/candidate/logs/stdout.txt")
		}, "result_manifest_error", "log logs/stdout.txt: attempt-1/candidate/logs/stdout.txt does not exist"},
		{"bundle with another log", func(l *looptest.Loop) {
			bundle(l)
			l.Seal()
			l.Files["attempt-1/candidate/logs/stdout.txt"] = "x"
		}, "result_manifest_error", "log logs/stdout.txt: the file has the digest"},
		{"bundle with a log without digest", func(l *looptest.Loop) {
			bundle(l)
			set(l.Manifests[0], "logs", canon.Array{canon.MustFrom(map[string]any{"type": "stdout", "locator": "logs/stdout.txt"})})
		}, "result_manifest_error", "has no digest"},
		{"bundle without its folder", func(l *looptest.Loop) {
			bundle(l)
			set(l.Config, "attempts.0.candidate_root", "nowhere")
		}, "result_manifest_error", "nowhere does not exist"},
		{"result without its folder", func(l *looptest.Loop) { set(l.Config, "attempts.0.candidate_root", "nowhere") }, "verification_error", "nowhere does not exist"},
		{"candidate is a file", func(l *looptest.Loop) { set(l.Config, "attempts.0.candidate_root", "work-unit.json") }, "verification_error", "work-unit.json is no folder"},
		{"validator not requested", func(l *looptest.Loop) {
			set(l.Manifests[0], "verification_request.expected_validator_ids", canon.Array{"artifact-digest", "candidate-scope"})
		}, "verification_error", "does not request the required validator independent-acceptance"},
		{"worker is its own verifier", func(l *looptest.Loop) { set(l.Manifests[0], "worker.id", "svc-local-verifier") }, "verification_error", "the same id svc-local-verifier"},
		{"no candidate artifact", func(l *looptest.Loop) {
			set(l.Manifests[0], "produced_artifacts.0.id", "other")
			set(l.Manifests[0], "verification_request.evidence_artifact_ids", canon.Array{})
		}, "verification_error", "no artifact candidate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := looptest.JSON()
			c.change(l)
			out := runLoop(t, l)
			a, b := out.Report.Attempts[0], out.Report.Attempts[1]
			if a.State != c.state || a.EvidenceState != c.state || a.Error == nil || !strings.Contains(*a.Error, c.text) || a.Verifier != nil {
				t.Errorf("%+v %v; want a.State == c.state && a.EvidenceState == c.state && a.Error != nil && strings.Contains(*a.Error, c.text) && a.Verifier == nil", a, derefString(a.Error))
			}
			if (a.Worker != nil) != (c.state == report.VerificationError) {
				t.Errorf("worker %+v; want (a.Worker != nil) == (c.state == report.VerificationError)", a.Worker)
			}
			if b.State != report.Verified || b.EvidenceState != report.Rejected || b.Error != nil {
				t.Errorf("the other attempt: %+v %v; want b.State == report.Verified && b.EvidenceState == report.Rejected && b.Error == nil", b, derefString(b.Error))
			}
			if out.Record.RunState != localloop.CompletedWithFailures || out.Record.Summary.ControlFailures != 1 || !out.Report.Summary.ControlFailurePresent {
				t.Errorf("%+v; want out.Record.RunState == localloop.CompletedWithFailures && out.Record.Summary.ControlFailures == 1 && out.Report.Summary.ControlFailurePresent", out.Record)
			}
			if len(out.Results) != 1 || len(out.Files) != 6 || !strings.Contains(string(out.Files[localloop.ReplayFile]), `"attempt-1": null`) {
				t.Errorf("%v; want len(out.Results) == 1 && len(out.Files) == 6 && strings.Contains(string(out.Files[localloop.ReplayFile]), `\"attempt-1\": null`)", out.FileNames())
			}
		})
	}
}

func derefString(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

// A control for another work unit binds to neither attempt.
func TestControlThatDoesNotBind(t *testing.T) {
	t.Parallel()
	set := looptest.Set
	for name, c := range map[string]struct {
		loop   *looptest.Loop
		change func(*looptest.Loop)
		text   string
	}{
		"work unit id":      {looptest.JSON(), func(l *looptest.Loop) { set(l.Control, "work_unit.id", "work/other") }, "another revision of the work unit"},
		"work unit version": {looptest.JSON(), func(l *looptest.Loop) { set(l.Control, "work_unit.version", 2) }, "another revision of the work unit"},
		"work unit digest":  {looptest.JSON(), func(l *looptest.Loop) { set(l.Control, "work_unit.digest", fixture.Digest("9")) }, "another revision of the work unit"},
		"fewer validators": {looptest.JSON(), func(l *looptest.Loop) {
			set(l.Control, "required_validators", canon.Array{"artifact-digest"})
		}, "not require exactly"},
		"a validator that is no check": {looptest.Patch("0.3"), func(l *looptest.Loop) {
			for _, m := range l.Manifests {
				set(m, "verification_request.expected_validator_ids", canon.Array{"unit-tests"})
			}
			set(l.Control, "required_validators", canon.Array{"unit-tests"})
			set(l.Unit, "validators", canon.Array{canon.MustFrom(map[string]any{"id": "unit-tests", "type": "ci", "required": true})})
		}, "has no check unit-tests"},
		"source revision": {looptest.Patch("0.2"), func(l *looptest.Loop) { set(l.Control, "source_revision", strings.Repeat("4", 40)) }, "source revision 4444"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.change(c.loop)
			out := runLoop(t, c.loop)
			for _, a := range out.Report.Attempts {
				if a.State != report.VerificationError || !strings.Contains(derefString(a.Error), c.text) {
					t.Errorf("%s %s; want a.State == report.VerificationError && strings.Contains(derefString(a.Error), c.text)", a.State, derefString(a.Error))
				}
			}
			w := out.Report.Warnings
			if len(w) != 3 || w[0] != "Worker success is not verified correctness." || !strings.Contains(w[2], "No attempt has a recommendation") {
				t.Errorf(`%q; want len(w) == 3 && w[0] == "Worker success is not verified correctness." && strings.Contains(w[2], "No attempt has a recommendation")`, w)
			}
		})
	}
}

// Work that needs a validator that is not required binds all the same.
func TestOptionalValidatorsDoNotBind(t *testing.T) {
	t.Parallel()
	l := looptest.JSON()
	v, _ := l.Unit.Get("validators")
	l.Unit.Set("validators", append(v.(canon.Array), canon.MustFrom(map[string]any{"id": "style", "type": "lint", "required": false})))
	if a := runLoop(t, l).Report.Attempts[0]; a.EvidenceState != report.Supported {
		t.Error(derefString(a.Error), "want a.EvidenceState ==", report.Supported)
	}
}

// What the attempts share must be right, or nothing takes place.
func TestFaultsOfTheRun(t *testing.T) {
	t.Parallel()
	set := looptest.Set
	attempts := func(l *looptest.Loop) canon.Array { a, _ := l.Config.Get("attempts"); return a.(canon.Array) }
	for name, c := range map[string]struct {
		change           func(*looptest.Loop)
		code, file, path string
	}{
		"config is no JSON":       {func(l *looptest.Loop) { l.Raw["config.json"] = "{" }, "invalid_json", "config.json", ""},
		"config has a key twice":  {func(l *looptest.Loop) { l.Raw["config.json"] = `{"run_id":1,"run_id":2}` }, "duplicate_key", "config.json", "/run_id"},
		"config too large":        {func(l *looptest.Loop) { l.Raw["config.json"] = "{}" + strings.Repeat(" ", canon.MaxFile) }, "input_read_error", "", ""},
		"unknown key":             {func(l *looptest.Loop) { l.Config.Set("select", true) }, "unknown_field", "config.json", "/select"},
		"no run id":               {func(l *looptest.Loop) { removeKey(l.Config, "run_id") }, "missing_field", "config.json", "/run_id"},
		"policy and plan":         {func(l *looptest.Loop) { l.Config.Set("evaluator_plan", "policy.json") }, "unknown_field", "config.json", "/evaluator_plan"},
		"neither policy nor plan": {func(l *looptest.Loop) { removeKey(l.Config, "verifier_policy") }, "missing_field", "config.json", "/verifier_policy"},
		"one attempt":             {func(l *looptest.Loop) { l.Config.Set("attempts", attempts(l)[:1]) }, "invalid_value", "config.json", "/attempts"},
		"three attempts":          {func(l *looptest.Loop) { l.Config.Set("attempts", append(attempts(l), attempts(l)[0])) }, "invalid_value", "config.json", "/attempts"},
		"unknown adapter":         {func(l *looptest.Loop) { set(l.Config, "attempts.0.worker_adapter", "shell") }, "invalid_value", "config.json", "/attempts/0/worker_adapter"},
		"failure and a result":    {func(l *looptest.Loop) { set(l.Config, "attempts.0.failure", "x") }, "unknown_field", "config.json", "/attempts/0/failure"},
		"same attempt ids":        {func(l *looptest.Loop) { set(l.Config, "attempts.1.attempt_id", "attempt-1") }, "duplicate_value", "config.json", "/attempts/1/attempt_id"},
		"ids that share a file": {func(l *looptest.Loop) {
			set(l.Config, "attempts.0.attempt_id", "a/B")
			set(l.Config, "attempts.1.attempt_id", "a:b")
		}, "duplicate_value", "config.json", "/attempts/1/attempt_id"},
		"work unit outside":         {func(l *looptest.Loop) { set(l.Config, "work_unit", "../work-unit.json") }, "invalid_value", "config.json", "/work_unit"},
		"absolute manifest":         {func(l *looptest.Loop) { set(l.Config, "attempts.0.result_manifest", "/etc/passwd") }, "invalid_value", "config.json", "/attempts/0/result_manifest"},
		"candidate outside":         {func(l *looptest.Loop) { set(l.Config, "attempts.1.candidate_root", "a/../../b") }, "invalid_value", "config.json", "/attempts/1/candidate_root"},
		"everything is a candidate": {func(l *looptest.Loop) { set(l.Config, "attempts.1.candidate_root", ".") }, "invalid_value", "config.json", "/attempts/1/candidate_root"},
		"policy in a candidate": {func(l *looptest.Loop) {
			set(l.Config, "verifier_policy", "attempt-2/candidate/policy.json")
		}, "invalid_value", "config.json", "/attempts/1/candidate_root"},
		"no work unit":               {func(l *looptest.Loop) { set(l.Config, "work_unit", "none.json") }, "input_read_error", "", ""},
		"work unit of another shape": {func(l *looptest.Loop) { removeKey(l.Unit, "objective") }, "missing_field", "work-unit.json", "/objective"},
		"work unit version 0.1":      {func(l *looptest.Loop) { set(l.Unit, "schema_version", "0.1") }, "invalid_value", "work-unit.json", "/schema_version"},
		"no policy":                  {func(l *looptest.Loop) { set(l.Config, "verifier_policy", "none.json") }, "input_read_error", "", ""},
		"a folder for a policy":      {func(l *looptest.Loop) { set(l.Config, "verifier_policy", "attempt-1") }, "input_read_error", "", ""},
		"policy of another kind":     {func(l *looptest.Loop) { set(l.Control, "kind", "svc-evaluator-plan") }, "invalid_value", "policy.json", "/kind"},
		"policy that allows too much": {func(l *looptest.Loop) { set(l.Control, "max_candidate_bytes", canon.MaxFile+1) }, "invalid_value", "policy.json",
			"/max_candidate_bytes"},
		"glob of many alternations": {func(l *looptest.Loop) {
			set(l.Unit, "constraints.allowed_paths", canon.Array{strings.Repeat("{a,a}", 50)})
		}, "invalid_value", "work-unit.json", "/constraints/allowed_paths/0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := looptest.JSON()
			c.change(l)
			err := attemptRun(t, l.Write(t, t.TempDir()))
			var f *localloop.Fault
			if !errors.As(err, &f) || f.Code != c.code || f.File != c.file || f.Path != c.path || f.Detail == "" {
				t.Errorf(`%v: %+v; want errors.As(err, &f) && f.Code == c.code && f.File == c.file && f.Path == c.path && f.Detail != ""`, err, f)
			}
		})
	}
}

// attemptRun returns the fault of a run, at whatever stage it occurs.
func attemptRun(t testing.TB, config string) error {
	t.Helper()
	s, err := localloop.Open(config)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	_, err = s.Run(t.Context(), localloop.Options{Now: tickingClock()})
	return err
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := openSource(t, looptest.JSON().Write(t, t.TempDir())).Run(ctx, localloop.Options{Now: tickingClock()}); !errors.Is(err, context.Canceled) {
		t.Error(err, "want errors.Is(err, context.Canceled)")
	}
}

// Two runs over the same files, wherever they lie and whenever they are made, have the
// same record and report.
func TestRunsAreEqual(t *testing.T) {
	t.Parallel()
	for name, l := range looptest.Samples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := runLoop(t, l), runLoop(t, l)
			for _, file := range a.FileNames() {
				if strings.HasPrefix(file, "verification-result-") {
					continue
				}
				if string(a.Files[file]) != string(b.Files[file]) {
					t.Errorf("%s differs", file)
				}
			}
			for id, r := range a.Results {
				if r.SemanticDigest() != b.Results[id].SemanticDigest() || r.ID != b.Results[id].ID {
					t.Errorf("%s: another semantic digest; want r.SemanticDigest() == b.Results[id].SemanticDigest() && r.ID == b.Results[id].ID", id)
				}
			}
			rec, err := canon.Parse(a.Files[localloop.RecordFile])
			if err != nil {
				t.Fatal(err)
			}
			rep, err := report.Parse(a.Files[localloop.ReportFile])
			if err != nil {
				t.Fatal(err)
			}
			config, err := canon.Parse([]byte(l.Render()["config.json"]))
			if err != nil {
				t.Fatal(err)
			}
			if rep.SourceRunDigest != canon.Digest(rec) || rep.SourceConfigDigest != canon.Digest(config) || rep.Digest() != a.Report.Digest() {
				t.Error("digests")
			}
			if rep.VerifierPolicyDigest != canon.Digest(l.Control) || rep.WorkUnit.Digest != canon.Digest(l.Unit) {
				t.Error("digests of the control and the work unit")
			}
		})
	}
}
