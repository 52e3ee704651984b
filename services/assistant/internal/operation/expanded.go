package operation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"
)

// Target is an object that an operation touches, as it was when the operation was
// proposed.
type Target struct {
	Ref Ref `json:"ref"`
	// UID is empty when the operation creates the object.
	UID string `json:"uid,omitempty"`
	// Fingerprint tells one wanted state from another: the generation, else a hash.
	Fingerprint     string `json:"fingerprint,omitempty"`
	ResourceVersion string `json:"resource_version,omitempty"`
}

// Expanded is an operation with all that its names, lists, selectors and manifest
// stand for. It is what a person approves and what runs.
type Expanded struct {
	Operation `json:"operation"`
	Targets   []Target `json:"targets"`
	// Affected are further objects that feel it: the pods of a drain, of a NoExecute
	// taint, of a deleted namespace.
	Affected []Ref `json:"affected,omitempty"`
	// Sources are objects that the write copies from: the revision of an undo, the
	// CronJob of a run_job. They are read only, and what was approved is bound to them.
	Sources []Target `json:"sources,omitempty"`
	// NoDryRun: the server could not rehearse it.
	NoDryRun bool `json:"no_dry_run,omitempty"`
	// At is the time that the write puts into its object, RFC 3339. It is taken once, at
	// the proposal.
	At string `json:"at,omitempty"`
}

// Digest binds an approval to exactly these operations on exactly these objects:
// SHA-256 over RFC 8785 JSON. The resource version is left out, since a status
// update moves it and changes nothing that was approved; so is what is merely affected,
// which comes and goes by itself, and the time of the proposal, since the same wish a
// minute later is the same wish.
func Digest(clusterUID string, ops []Expanded) string {
	type target struct {
		Ref         Ref    `json:"ref"`
		UID         string `json:"uid"`
		Fingerprint string `json:"fingerprint"`
	}
	type entry struct {
		Operation Operation `json:"operation"`
		Targets   []target  `json:"targets"`
		Sources   []target  `json:"sources,omitempty"`
	}
	reduced := func(list []Target) []target {
		out := make([]target, 0, len(list))
		for _, t := range list {
			out = append(out, target{t.Ref, t.UID, t.Fingerprint})
		}
		return out
	}
	entries := make([]entry, 0, len(ops))
	for _, e := range ops {
		entries = append(entries, entry{e.Operation, reduced(e.Targets), reduced(e.Sources)})
	}
	plain, err := json.Marshal(struct {
		Cluster    string  `json:"cluster"`
		Operations []entry `json:"operations"`
	}{clusterUID, entries})
	if err == nil {
		plain, err = jcs.Transform(plain)
	}
	if err != nil {
		// Strings and whole numbers only: neither step has anything to refuse.
		panic(fmt.Sprintf("operation: digest: %v", err))
	}
	sum := sha256.Sum256(plain)
	return "sha256:" + hex.EncodeToString(sum[:])
}
