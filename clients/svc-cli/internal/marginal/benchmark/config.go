package benchmark

import (
	"math/big"
	"slices"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/configdir"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal"
)

// ConfigSchema is the name of the config.
const ConfigSchema = "marginal-evidence-benchmark-config-v0.1"

// Config lists what a benchmark compares.
type Config struct {
	BenchmarkID     string
	Design, Holdout string // relative paths of the matrices
	Current         []string
	Candidates      []string
	Families        map[string]string // of every current and candidate verifier
	RandomSeed      *big.Int
	Bootstrap       gatestat.Bootstrap
	Digest          string // hex SHA-256 of the document in form C2
}

// ReadConfig reads a config, a closed document. A fault is a *closed.Fault.
func ReadConfig(doc canon.Value) (*Config, error) {
	r := closed.NewReader(gate.Codes)
	o := r.Root(doc, "schema", "benchmark_id", "design_matrix", "holdout_matrix", "current_verifier_ids",
		"candidate_verifier_ids", "verifier_families", "random_seed", "bootstrap")
	o.OneOf("schema", gate.InvalidValue, ConfigSchema)
	c := &Config{
		BenchmarkID: o.Match("benchmark_id", gate.InvalidValue, gate.WhatID, gate.IsID),
		Design:      o.Match("design_matrix", configdir.OutsideFolder, configdir.WhatRelative, configdir.IsRelative),
		Holdout:     o.Match("holdout_matrix", configdir.OutsideFolder, configdir.WhatRelative, configdir.IsRelative),
		Current:     readIDs(r, o, "current_verifier_ids", nil),
		Families:    map[string]string{},
	}
	c.Candidates = readIDs(r, o, "candidate_verifier_ids", c.Current)
	all := slices.Concat(c.Current, c.Candidates)
	families := o.Object("verifier_families", all...)
	for _, id := range all {
		c.Families[id] = families.Match(id, gate.InvalidValue, gate.WhatID, gate.IsID)
	}
	c.RandomSeed = o.Exact("random_seed").Big()
	c.Bootstrap = readBootstrap(r, o.Object("bootstrap", "replicates", "seed", "confidence_level"))
	if f := r.Fault(); f != nil {
		return nil, f
	}
	c.Digest = canon.DigestHexC2(doc)
	return c, nil
}

// readIDs reads an array of one or more ids, none of which is in it twice or in others.
func readIDs(r *closed.Reader, o closed.Object, key string, others []string) []string {
	var out []string
	o.Array(key, 1, func(v canon.Value, path string) {
		id := r.Match(v, path, gate.InvalidValue, gate.WhatID, gate.IsID)
		switch {
		case slices.Contains(out, id):
			r.Fail(marginal.DuplicateVerifier, path, "the list names this verifier before")
		case slices.Contains(others, id):
			r.Fail(marginal.DuplicateVerifier, path, "a candidate must not be in the current panel")
		case len(out) == gate.MaxVerifiers:
			r.Fail(gate.TooManyVerifiers, path, "a matrix has at most %d verifiers", gate.MaxVerifiers)
		}
		out = append(out, id)
	})
	return out
}

func readBootstrap(r *closed.Reader, o closed.Object) gatestat.Bootstrap {
	b := gatestat.Bootstrap{
		Replicates:      int(min(o.Int("replicates", 0), gatestat.MaxReplicates+1)),
		Seed:            o.Exact("seed").Big(),
		ConfidenceLevel: o.Number("confidence_level"),
	}
	if err := b.Check(); err != nil && r.OK() {
		key := "replicates"
		f := err.(*closed.Fault)
		if f.Code == gatestat.InvalidConfidenceLevel {
			key = "confidence_level"
		}
		o.Fail(f.Code, key, "%s", f.Detail)
	}
	return b
}
