package synthesis

import (
	"path"
	"slices"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/configdir"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/marginal/benchmark"
)

// ConfigSchema is the name of the config.
const ConfigSchema = "marginal-evidence-synthesis-config-v0.1"

// MaxReports limits the benchmarks of one synthesis.
const MaxReports = 128

// TooManyReports is the code of a config that names more.
const TooManyReports = "too_many_benchmark_reports"

// Config lists the reports to combine.
type Config struct {
	SynthesisID   string
	EvidenceClass string   // that every report must have
	Reports       []string // relative paths
	Digest        string   // hex SHA-256 of the document in form C2
}

// ReadConfig reads a config, a closed document. A fault is a *closed.Fault.
func ReadConfig(doc canon.Value) (*Config, error) {
	r := closed.NewReader(gate.Codes)
	o := r.Root(doc, "schema", "synthesis_id", "evidence_class", "selection_rule_version", "benchmark_reports")
	o.OneOf("schema", gate.InvalidValue, ConfigSchema)
	o.OneOf("selection_rule_version", gate.InvalidValue, benchmark.RuleVersion)
	c := &Config{
		SynthesisID:   o.Match("synthesis_id", gate.InvalidValue, gate.WhatID, gate.IsID),
		EvidenceClass: o.OneOf("evidence_class", gate.InvalidValue, "synthetic", "observed"),
	}
	o.Array("benchmark_reports", 2, func(v canon.Value, at string) {
		name := r.Match(v, at, configdir.OutsideFolder, configdir.WhatRelative, configdir.IsRelative)
		if slices.ContainsFunc(c.Reports, func(other string) bool { return path.Clean(other) == path.Clean(name) }) {
			r.Fail(configdir.SameFile, at, "the list names this file before")
		}
		if len(c.Reports) == MaxReports {
			r.Fail(TooManyReports, at, "a synthesis takes at most %d reports", MaxReports)
		}
		c.Reports = append(c.Reports, name)
	})
	if f := r.Fault(); f != nil {
		return nil, f
	}
	c.Digest = canon.DigestHexC2(doc)
	return c, nil
}
