// Package jsonverify is the deterministic JSON verifier: the candidate is one JSON
// document, it must be the very file that the worker reported, be among exactly the allowed
// files, and equal the document that the policy requires.
package jsonverify

import (
	"errors"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/confined"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/verification"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Adapter and version of the verifier.
const (
	Adapter = "deterministic-json-verifier"
	Version = "0.1"
)

// The checks.
const (
	ArtifactDigest        = "artifact-digest"
	CandidateScope        = "candidate-scope"
	IndependentAcceptance = "independent-acceptance"
)

// Checks lists this verifier's checks.
var Checks = []string{ArtifactDigest, CandidateScope, IndependentAcceptance}

// Verify judges a candidate whose control binds. Input that it cannot read makes a check
// that could not be done, never an error of Verify.
func Verify(in verification.Input) (*verification.Result, error) {
	d := verification.NewDraft(in, Adapter, Version)
	artifact, _ := in.Manifest.Artifact(in.Control.CandidateArtifactID)
	content, err := in.Candidate.Inspect(artifact.Locator, in.Control.MaxCandidateBytes)

	hash := d.Check(ArtifactDigest)
	switch {
	case err != nil:
		hash.Errorf("The candidate cannot be read: %v.", err)
	case content.Digest != artifact.Digest:
		hash.Failf("%s has the digest %s, but the manifest says %s.", artifact.Locator, content.Digest, artifact.Digest)
	}
	if err == nil {
		d.Observe("candidate-artifact-hash", content.Digest, hash)
	}
	checkScope(d, in)
	checkAcceptance(d, in, content, err)
	return d.Finish()
}

type scopeObservation struct {
	AllowedFiles  []string `json:"allowed_files"`
	ObservedFiles []string `json:"observed_files"`
}

func checkScope(d *verification.Draft, in verification.Input) {
	check := d.Check(CandidateScope)
	allowed := in.Control.AllowedFiles
	found, err := in.Candidate.List()
	if err != nil {
		check.Errorf("The candidate's files cannot be listed: %v.", err)
		return
	}
	observed := slices.Sorted(slices.Values(slices.Concat(found.Files, found.Other)))
	for _, name := range found.Other {
		check.Failf("%s is no regular file; a candidate holds nothing else.", name)
	}
	for _, name := range found.Files {
		if _, ok := slices.BinarySearch(allowed, name); !ok {
			check.Failf("%s is not among the allowed files.", name)
		}
	}
	for _, name := range allowed {
		if _, ok := slices.BinarySearch(observed, name); !ok {
			check.Failf("%s is absent.", name)
		}
	}
	d.ObserveDocument("candidate-scope-observation", scopeObservation{AllowedFiles: allowed, ObservedFiles: validText(observed)}, check)
}

// validText makes names that are not UTF-8 fit for a document. They are not allowed anyway.
func validText(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ToValidUTF8(n, "\uFFFD")
	}
	return out
}

type acceptance struct {
	Expected   canon.Value `json:"expected"`
	Observed   canon.Value `json:"observed"`
	ParseError *string     `json:"parse_error"`
}

func checkAcceptance(d *verification.Draft, in verification.Input, content confined.Content, readErr error) {
	check := d.Check(IndependentAcceptance)
	if readErr != nil {
		check.Errorf("The candidate cannot be read: %v.", readErr)
		return
	}
	seen := acceptance{Expected: in.Control.RequiredJSON}
	wrong := func(reason string) { seen.ParseError = &reason }
	if content.Bytes == nil {
		wrong(string(canon.TooLarge))
		check.Failf("The candidate has %d bytes; %d are allowed.", content.Size, in.Control.MaxCandidateBytes)
	} else if v, err := canon.Parse(content.Bytes); err != nil {
		var syntax *canon.SyntaxError
		errors.As(err, &syntax)
		wrong(string(syntax.Reason))
		check.Failf("The candidate is no JSON document: %v.", err)
	} else if _, err := canon.C1(canon.Array{v}); err != nil { // the observation holds it one level deeper
		wrong(string(canon.TooDeep))
		check.Failf("The candidate's arrays and objects are nested too deep.")
	} else {
		if seen.Observed = v; !field.Equal(v, in.Control.RequiredJSON) {
			check.Failf("The candidate is not the required document.")
		}
	}
	d.ObserveDocument("acceptance-observation", seen, check)
}
