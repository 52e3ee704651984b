package localloop

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/confined"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// ConfigVersion is the version of a config.
const ConfigVersion = "0.1"

// The worker adapters. None starts a worker.
const (
	FixtureResult  = "fixture-result"  // a manifest and a candidate that are there
	ResultBundle   = "result-bundle"   // the same, and every file it names is there with its digest
	FixtureFailure = "fixture-failure" // a worker that failed
)

// maxFailure keeps a report small enough to be imported, whatever a worker's error was.
const maxFailure = 4096

// Config is a checked config. Its paths lie within its folder.
type Config struct {
	RunID    string
	WorkUnit string
	Control  string // the path of the policy or plan
	Plan     bool   // Control is a plan
	Attempts []AttemptConfig
	Digest   string
}

// AttemptConfig is one attempt: a failure, or a manifest and a candidate.
type AttemptConfig struct {
	ID            string
	Adapter       string
	Manifest      string
	CandidateRoot string
	Failure       string
}

// ResultFile is the file to which the attempt's verification result is written.
func (a AttemptConfig) ResultFile() string { return "verification-result-" + fileName(a.ID) + ".json" }

// fileName makes a file name of an identifier.
func fileName(id string) string { return strings.NewReplacer("/", "_", ":", "_").Replace(id) }

// DefaultOutput returns the folder of a run for which no other is requested.
func DefaultOutput(runID string) string { return filepath.Join("svc-local-loop", fileName(runID)) }

// ReadConfig checks a parsed config; a fault is a *closed.Fault.
func ReadConfig(v canon.Value) (*Config, error) {
	r := field.NewReader()
	control := "verifier_policy"
	if o, ok := v.(*canon.Object); ok {
		if _, plan := o.Get("evaluator_plan"); plan {
			if _, both := o.Get(control); both {
				r.Fail(field.Unknown, "/evaluator_plan", "a config has a verifier_policy or an evaluator_plan, not both")
			}
			control = "evaluator_plan"
		}
	}
	o := r.Root(v, "schema_version", "run_id", "work_unit", control, "attempts")
	o.OneOf("schema_version", field.InvalidValue, ConfigVersion)
	c := &Config{RunID: field.Identifier(o, "run_id"), WorkUnit: field.Path(o, "work_unit"), Control: field.Path(o, control), Plan: control == "evaluator_plan"}
	o.Array("attempts", 2, func(v canon.Value, path string) { c.Attempts = append(c.Attempts, readAttempt(r, v, path)) })
	if r.OK() && len(c.Attempts) != 2 {
		o.Fail(field.InvalidValue, "attempts", "a loop has exactly 2 attempts")
	}
	if r.OK() {
		c.checkAttempts(r)
	}
	if f := r.Fault(); f != nil {
		return nil, f
	}
	c.Digest = canon.Digest(v)
	return c, nil
}

func readAttempt(r *closed.Reader, v canon.Value, path string) AttemptConfig {
	keys := []string{"attempt_id", "worker_adapter", "result_manifest", "candidate_root"}
	var adapter string
	if o, ok := v.(*canon.Object); ok {
		got, _ := o.Get("worker_adapter")
		if adapter, _ = got.(string); adapter == FixtureFailure {
			keys = []string{"attempt_id", "worker_adapter", "failure"}
		}
	}
	o := r.Object(v, path, keys...)
	a := AttemptConfig{ID: field.Identifier(o, "attempt_id"), Adapter: o.OneOf("worker_adapter", field.InvalidValue, FixtureResult, ResultBundle, FixtureFailure)}
	if adapter == FixtureFailure {
		a.Failure = o.Match("failure", field.InvalidValue, "a text of 1 to 4096 characters", func(s string) bool {
			return s != "" && utf8.RuneCountInString(s) <= maxFailure
		})
		return a
	}
	a.Manifest, a.CandidateRoot = field.Path(o, "result_manifest"), field.Path(o, "candidate_root")
	return a
}

func (c *Config) checkAttempts(r *closed.Reader) {
	a, b := c.Attempts[0], c.Attempts[1]
	switch {
	case a.ID == b.ID:
		r.Fail(field.DuplicateValue, "/attempts/1/attempt_id", "the first attempt has this id")
	case strings.EqualFold(a.ResultFile(), b.ResultFile()): // some file systems know no case
		r.Fail(field.DuplicateValue, "/attempts/1/attempt_id", "both attempts would be written to one file %s", b.ResultFile())
	}
	for i, a := range c.Attempts {
		if a.CandidateRoot != "" && isWithin(a.CandidateRoot, c.Control) {
			r.Fail(field.InvalidValue, canon.Element("/attempts", i)+"/candidate_root", "the folder holds the policy or plan that judges it, which must lie outside every candidate")
		}
	}
}

// isWithin reports whether path is root or lies below it.
func isWithin(root, path string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// Source is a config and the open folder that its paths lie in.
type Source struct {
	Config *Config
	Name   string // the file name of the config
	folder *confined.Folder
	dir    string
}

// Open reads a config. A fault of it is a *Fault.
func Open(path string) (*Source, error) {
	dir, name := filepath.Split(filepath.Clean(path))
	if dir == "" {
		dir = "."
	}
	folder, err := confined.Open(dir)
	if err != nil {
		return nil, &Fault{Code: ReadError, Detail: err.Error()}
	}
	s := &Source{Name: name, folder: folder, dir: dir}
	if s.Config, err = readFile(folder, name, "config", ReadConfig); err == nil {
		err = s.checkOutside()
	}
	if err != nil {
		_ = folder.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the use of the config's folder.
func (s *Source) Close() error { return s.folder.Close() }

// checkOutside compares the folders themselves: two spellings can name one folder.
func (s *Source) checkOutside() error {
	for i, a := range s.Config.Attempts {
		if a.CandidateRoot != "" && s.folder.Contains(a.CandidateRoot, s.Config.Control) {
			return &Fault{Code: field.InvalidValue, File: s.Name, Path: canon.Element("/attempts", i) + "/candidate_root",
				Detail: "the folder holds the policy or plan that judges it, which must lie outside every candidate"}
		}
	}
	return nil
}

// readFile reads and checks one document of the run.
func readFile[T any](folder *confined.Folder, name, what string, read func(canon.Value) (T, error)) (T, error) {
	var none T
	data, err := folder.Read(name, canon.MaxFile)
	if err != nil {
		return none, &Fault{Code: ReadError, Detail: fmt.Sprintf("the %s cannot be read: %v", what, err)}
	}
	doc, err := field.Parse(data)
	if err != nil {
		return none, faultOf(name, err)
	}
	out, err := read(doc)
	if err != nil {
		return none, faultOf(name, err)
	}
	return out, nil
}
