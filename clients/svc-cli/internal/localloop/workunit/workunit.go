// Package workunit is the work unit v0.2: the task of a worker, where it may write,
// and who must check it.
package workunit

import (
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/shape"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Unit is a checked work unit: the parts that a loop uses, and the digest of all.
type Unit struct {
	ID      string
	Version int64
	Digest  string
	// Validators that must have passed, in the order of the document.
	Required []string
	// Globs of the paths that a change may touch, may not touch, and may write.
	AllowedPaths, ForbiddenPaths, FilesystemWrite []string
	// SourceRevision is the revision that the unit was written against, or "".
	SourceRevision string
}

var schema = shape.New("work-unit", "", field.Codes)

// document holds the fields of a work unit that a loop uses.
type document struct {
	ID          string `json:"id"`
	Version     int64  `json:"version"`
	Constraints struct {
		AllowedPaths   []string `json:"allowed_paths"`
		ForbiddenPaths []string `json:"forbidden_paths"`
	} `json:"constraints"`
	Permissions struct {
		FilesystemWrite []string `json:"filesystem_write"`
	} `json:"permissions"`
	Validators []struct {
		ID       string `json:"id"`
		Required bool   `json:"required"`
	} `json:"validators"`
	Provenance struct {
		SourceRevision string `json:"source_revision"`
	} `json:"provenance"`
}

// Read checks a parsed work unit; a fault is a *closed.Fault.
func Read(v canon.Value) (*Unit, error) {
	var d document
	if err := schema.Decode(v, &d); err != nil {
		return nil, err
	}
	r := field.NewReader()
	field.CheckGlobs(r, "/constraints/allowed_paths", d.Constraints.AllowedPaths)
	field.CheckGlobs(r, "/constraints/forbidden_paths", d.Constraints.ForbiddenPaths)
	field.CheckGlobs(r, "/permissions/filesystem_write", d.Permissions.FilesystemWrite)
	required, seen := []string{}, map[string]bool{}
	for i, check := range d.Validators {
		field.Once(r, seen, check.ID, canon.Element("/validators", i)+"/id")
		if check.Required {
			required = append(required, check.ID)
		}
	}
	if f := r.Fault(); f != nil {
		return nil, f
	}
	return &Unit{
		ID: d.ID, Version: d.Version, Digest: canon.Digest(v), Required: required,
		AllowedPaths: d.Constraints.AllowedPaths, ForbiddenPaths: d.Constraints.ForbiddenPaths,
		FilesystemWrite: d.Permissions.FilesystemWrite, SourceRevision: strings.ToLower(d.Provenance.SourceRevision),
	}, nil
}

// Ref names one revision of a work unit.
type Ref struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	Digest  string `json:"digest"`
}

// Ref is the reference by which other documents name this unit.
func (u *Unit) Ref() Ref { return Ref{ID: u.ID, Version: u.Version, Digest: u.Digest} }
