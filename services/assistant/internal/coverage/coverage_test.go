package coverage_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/coverage"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

var (
	web   = []operation.Ref{{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}}
	first = engine.Log{Namespace: "shop", Pod: "web-1", Container: "web"}
	prior = engine.Log{Namespace: "shop", Pod: "web-1", Container: "web", Previous: true}
)

// whole returns a record of a deployment of which everything was examined.
func whole(s *engine.Snapshot) *coverage.Record {
	r := coverage.New(s, "with deployment `web`", "shop", web)
	logs := coverage.NewLogs([]engine.Log{first})
	logs.Add(coverage.LogRead{Log: first, Lines: 10})
	r.SetLogs(logs)
	return r
}

// TestOnlyACompleteRecordIsClear: anything that was not examined prevents the all-clear, and is named.
func TestOnlyACompleteRecordIsClear(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		record func(s *engine.Snapshot) *coverage.Record
		found  []engine.Finding
		clear  bool
		must   []string
	}{
		"everything was looked at": {whole, nil, true, []string{"Nothing was found wrong with deployment `web`."}},
		"no record":                {func(*engine.Snapshot) *coverage.Record { return nil }, nil, false, []string{"No object shows a fault in the cluster.", "The cluster: `kubectl get pods -A`"}},
		"the zero record":          {func(*engine.Snapshot) *coverage.Record { return &coverage.Record{} }, nil, false, []string{"The cluster"}},
		"no log was looked for": {func(s *engine.Snapshot) *coverage.Record { return coverage.New(s, "in namespace `shop`", "shop", nil) }, nil, false,
			[]string{"No object shows a fault in namespace `shop`.", "The logs of the pods"}},
		"a log that was not read": {func(s *engine.Snapshot) *coverage.Record {
			r, logs := whole(s), coverage.NewLogs([]engine.Log{first, prior})
			logs.Add(coverage.LogRead{Log: first})
			logs.Leave(prior, "The kubelet does not answer.")
			r.SetLogs(logs)
			return r
		}, nil, false, []string{"the run before its restart (The kubelet does not answer.): `kubectl logs web-1 -c web -n shop --previous`"}},
		"a log that was cut": {func(s *engine.Snapshot) *coverage.Record {
			r, logs := whole(s), coverage.NewLogs([]engine.Log{first})
			logs.Add(coverage.LogRead{Log: first, Lines: 500, From: at, Cut: "too long"})
			r.SetLogs(logs)
			return r
		}, nil, false, []string{"What is older than 2026-01-02 10:00:00 in the log of pod `web-1`, container `web` (too long): `kubectl logs web-1 -c web -n shop`"}},
		"a kind that was not read": {func(s *engine.Snapshot) *coverage.Record {
			s.Unread = map[string]bool{"networkpolicies": true}
			return whole(s)
		}, nil, false, []string{"networkpolicies, so that the rules for name resolution, network policy saw only a part: `kubectl get networkpolicies -n shop`"}},
		"a symptom with rules": {func(s *engine.Snapshot) *coverage.Record {
			r := whole(s)
			r.Ask([]question.Symptom{question.Crash}, true, "web crashes")
			return r
		}, nil, true, nil},
		"a symptom without a rule": {func(s *engine.Snapshot) *coverage.Record {
			r := whole(s)
			r.Ask([]question.Symptom{-1}, false, "")
			return r
		}, nil, false, []string{"A symptom for which there is no rule"}},
		"a symptom that is measured": {func(s *engine.Snapshot) *coverage.Record {
			r := whole(s)
			r.Ask([]question.Symptom{question.Slow}, false, "is web slow")
			return r
		}, nil, false, []string{"How long requests take: `kubectl top pods --containers -n shop`", "no metrics API"}},
		"a fault that only a request shows": {func(s *engine.Snapshot) *coverage.Record {
			r := whole(s)
			r.Ask([]question.Symptom{question.Traffic}, true, "web does not answer")
			return r
		}, nil, false, []string{"Whether a request is answered now: `kubectl port-forward"}},
		"a fault in words of no symptom": {func(s *engine.Snapshot) *coverage.Record {
			r := whole(s)
			r.Ask(nil, true, "web loses pictures")
			return r
		}, nil, false, []string{"`web loses pictures`", "no rule covers it"}},
		"a symptom that nothing explains": {func(s *engine.Snapshot) *coverage.Record {
			r := whole(s)
			r.SetUnexplained("- Pod `web-1` is not ready.\n")
			return r
		}, nil, false, []string{"No known cause was found, but not everything is healthy", "web-1"}},
		"a kind that no rule judges": {func(s *engine.Snapshot) *coverage.Record {
			r := whole(s)
			r.SetUnjudged("Whether it is right was not judged.")
			return r
		}, nil, false, []string{"was not judged"}},
		"a log that hints at a fault": {func(s *engine.Snapshot) *coverage.Record {
			r := whole(s)
			r.Doubt()
			return r
		}, nil, false, []string{"No object shows a fault in deployment `web`."}},
		"a finding": {whole, []engine.Finding{{Cause: "It crashes."}}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := coverage.Verdict(row.record(&engine.Snapshot{Taken: at}), row.found)
			if got.Clear() != row.clear || strings.Contains(got.String(), "Nothing was found wrong") != row.clear {
				t.Errorf("clear is %v, want %v: %s", got.Clear(), row.clear, got)
			}
			for _, say := range row.must {
				if !strings.Contains(got.String(), say) {
					t.Errorf("got %s\nwant it to say %q", got, say)
				}
			}
		})
	}
}

// TestEverySymptomHasRules: every symptom in the vocabulary is covered; otherwise a question about it could never be
// cleared.
func TestEverySymptomHasRules(t *testing.T) {
	t.Parallel()
	for s := question.Crash; s <= question.Address; s++ {
		if len(coverage.Classes(s)) == 0 {
			t.Errorf("symptom %d has no rules; want some", s)
		}
	}
}

// allClear matches statements reserved for Verdict.
var allClear = regexp.MustCompile(`(?i)nothing (was|is|seems) (found )?wrong|no object shows a fault|(is|are|looks?) (all )?(healthy|fine)\.|no fault is known|shows? no fault\.`)

// TestOnlyVerdictSaysThatNothingIsWrong searches the source of the service for other texts with such statements.
func TestOnlyVerdictSaysThatNothingIsWrong(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, filepath.Join(root, "coverage")) {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && allClear.MatchString(strings.ReplaceAll(text.Value, "not look healthy", "")) {
				t.Errorf("%s says %s; want only coverage.Verdict to say that nothing is wrong", files.Position(text.Pos()), text.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
