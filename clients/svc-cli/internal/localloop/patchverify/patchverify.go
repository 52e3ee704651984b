// Package patchverify is the patch verifier: the candidate is a unified diff. It must be
// the very file that the worker reported, touch only what the work unit allows, and change
// each planned file as the plan requires, no file more and none less. No patch is applied
// and nothing is run.
package patchverify

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/control"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/manifest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/udiff"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/verification"
)

// Adapter is the name of the verifier.
const Adapter = "deterministic-patch-verifier"

// versions of the verifier, by version of the plan.
var versions = map[string]string{"0.2": "0.1.1", "0.3": "0.2.0", "0.4": "0.3.0"}

// The checks.
const (
	ResultManifestSchema = "result-manifest-schema"
	IndependentReview    = "independent-review"
)

// Checks lists this verifier's checks.
var Checks = []string{ResultManifestSchema, IndependentReview}

// Verify judges a candidate whose control binds. Input that it cannot read makes a check
// that could not be done, never an error of Verify.
func Verify(in verification.Input) (*verification.Result, error) {
	d := verification.NewDraft(in, Adapter, versions[in.Control.SchemaVersion])
	schema := d.Check(ResultManifestSchema) // a manifest that does not fit its schema comes to no verifier
	d.Observe("result-manifest-canonical", in.Manifest.Digest, schema)

	review := d.Check(IndependentReview)
	files, problem, readable := readPatch(d, review, in)
	checkLogs(d, review, in)
	if readable {
		checkScope(d, review, in, files)
		checkSemantics(d, review, in.Control, files, problem)
	}
	d.ObserveDocument("worker-status-observation", struct {
		WorkerID     string `json:"worker_id"`
		WorkerStatus string `json:"worker_status"`
	}{in.Manifest.WorkerID, in.Manifest.Status}, review)
	return d.Finish()
}

// readPatch reads the candidate. problem is why it is no patch.
func readPatch(d *verification.Draft, review *verification.Judgement, in verification.Input) (files []udiff.File, problem *string, readable bool) {
	artifact, _ := in.Manifest.Artifact(in.Control.CandidateArtifactID)
	content, err := in.Candidate.Inspect(artifact.Locator, udiff.MaxBytes)
	if err != nil {
		review.Errorf("The candidate cannot be read: %v.", err)
		return nil, nil, false
	}
	d.Observe("candidate-patch-hash", content.Digest, review)
	if content.Digest != artifact.Digest {
		review.Failf("%s has the digest %s, but the manifest says %s.", artifact.Locator, content.Digest, artifact.Digest)
	}
	if content.Bytes == nil {
		review.Failf("The patch has %d bytes; %d are allowed.", content.Size, udiff.MaxBytes)
		why := "too_large"
		return nil, &why, true
	}
	files, err = udiff.Parse(content.Bytes)
	if err != nil {
		review.Failf("The candidate is no patch of text files: %v.", err)
		why := err.Error()
		return nil, &why, true
	}
	return files, nil, true
}

type logObservation struct {
	Type     string  `json:"type"`
	Locator  string  `json:"locator"`
	Expected *string `json:"expected_digest"`
	Observed *string `json:"observed_digest"`
}

// checkLogs checks the digest of every log that has one, and that each required type has
// such a log.
func checkLogs(d *verification.Draft, review *verification.Judgement, in verification.Input) {
	seen := []logObservation{}
	vouched := map[string]bool{}
	for _, l := range in.Manifest.Logs {
		o := logObservation{Type: l.Type, Locator: l.Locator}
		if l.Digest != "" {
			o.Expected = &l.Digest
			vouched[l.Type] = true
			o.Observed = checkLog(review, in, l)
		}
		seen = append(seen, o)
	}
	required := append([]string{}, in.Control.RequiredLogTypes...)
	for _, t := range required {
		if !vouched[t] {
			review.Failf("The manifest has no log of type %s with a digest, which the plan requires.", t)
		}
	}
	d.ObserveDocument("log-integrity-observation", struct {
		Required []string         `json:"required_log_types"`
		Logs     []logObservation `json:"logs"`
	}{required, seen}, review)
}

func checkLog(review *verification.Judgement, in verification.Input, l manifest.Log) *string {
	content, err := in.Candidate.Inspect(l.Locator, 0)
	if err != nil {
		review.Errorf("A log cannot be read: %v.", err)
		return nil
	}
	if content.Digest != l.Digest {
		review.Failf("The log %s has the digest %s, but the manifest says %s.", l.Locator, content.Digest, l.Digest)
	}
	return &content.Digest
}

// checkScope holds every file that the patch touches against the globs of the work unit.
func checkScope(d *verification.Draft, review *verification.Judgement, in verification.Input, files []udiff.File) {
	u := in.Unit
	touched := []string{}
	for _, f := range files {
		touched = append(touched, f.Path)
		if !matchesAny(u.AllowedPaths, f.Path) {
			review.Failf("%s is not among the allowed paths.", f.Path)
		}
		if forbidsPath(u.ForbiddenPaths, f.Path) {
			review.Failf("%s is among the forbidden paths.", f.Path)
		}
		if !matchesAny(u.FilesystemWrite, f.Path) {
			review.Failf("%s is not among the paths that may be written.", f.Path)
		}
	}
	d.ObserveDocument("patch-scope-observation", struct {
		Allowed   []string `json:"allowed_paths"`
		Forbidden []string `json:"forbidden_paths"`
		Write     []string `json:"filesystem_write"`
		Touched   []string `json:"touched_paths"`
	}{u.AllowedPaths, u.ForbiddenPaths, u.FilesystemWrite, touched}, review)
}

func matchesAny(globs []string, path string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return doublestar.MatchUnvalidated(g, path) })
}

// forbidsPath reports whether a path matches a glob or lies in a folder that a glob names:
// its last part is a name without *, or it ends with a slash. Its author means that
// nothing may lie in a forbidden folder, and a file could not match "src/" at all.
func forbidsPath(globs []string, path string) bool {
	return matchesAny(globs, path) || slices.ContainsFunc(globs, func(g string) bool {
		folder, slash := strings.CutSuffix(g, "/")
		last := folder[strings.LastIndexByte(folder, '/')+1:]
		return (slash || !strings.Contains(last, "*")) && doublestar.MatchUnvalidated(folder+"/**", path)
	})
}

type change struct {
	Path    string   `json:"path"`
	New     bool     `json:"new"`
	Gone    bool     `json:"deleted"`
	Added   []string `json:"added_lines"`
	Removed []string `json:"removed_lines"`
}

// checkSemantics compares the patch's changes with the plan.
func checkSemantics(d *verification.Draft, review *verification.Judgement, plan *control.Control, files []udiff.File, problem *string) {
	observed := []change{}
	for _, f := range files {
		observed = append(observed, change{f.Path, f.New, f.Gone, append([]string{}, f.Added...), append([]string{}, f.Removed...)})
	}
	if problem == nil {
		judgeFiles(review, plan, files)
	}
	d.ObserveDocument("patch-semantic-observation", struct {
		Evaluator  string   `json:"evaluator"`
		PlanDigest string   `json:"plan_digest"`
		Observed   []change `json:"observed"`
		ParseError *string  `json:"parse_error"`
	}{plan.Evaluator, plan.Digest, observed, problem}, review)
}

func judgeFiles(review *verification.Judgement, plan *control.Control, files []udiff.File) {
	planned := map[string]bool{}
	for _, want := range plan.Files {
		planned[want.Path] = true
		i := slices.IndexFunc(files, func(f udiff.File) bool { return f.Path == want.Path })
		if i < 0 {
			review.Failf("The patch does not change %s.", want.Path)
			continue
		}
		judgeFile(review, plan.Evaluator, want, files[i])
	}
	for _, f := range files {
		if !planned[f.Path] {
			review.Failf("The patch changes %s, which the plan does not name.", f.Path)
		}
	}
}

func judgeFile(review *verification.Judgement, evaluator string, want control.File, got udiff.File) {
	if evaluator == control.PatchExactLines {
		if !slices.Equal(want.AddedLines, got.Added) {
			review.Failf("The lines added to %s are not exactly those of the plan.", want.Path)
		}
		// Such a plan cannot express a removal, so it allows none.
		if len(got.Removed) > 0 {
			review.Failf("The patch removes %d lines of %s, which the plan does not name.", len(got.Removed), want.Path)
		}
		return
	}
	for _, side := range []struct {
		what       string
		substrings []string
		lines      []string
	}{{"added to", want.AddedSubstrings, got.Added}, {"removed from", want.RemovedSubstrings, got.Removed}} {
		for _, s := range side.substrings {
			if !slices.ContainsFunc(side.lines, func(line string) bool { return strings.Contains(line, s) }) {
				review.Failf("No line that is %s %s has %q.", side.what, want.Path, s)
			}
		}
	}
}
