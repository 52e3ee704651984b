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
	// Fingerprint identifies the wanted state: the generation, else a hash.
	Fingerprint     string `json:"fingerprint,omitempty"`
	ResourceVersion string `json:"resource_version,omitempty"`
}

// Expanded is an operation whose names, lists, selectors and manifest have been resolved to objects. It is the form
// that a person approves and that runs.
type Expanded struct {
	Operation `json:"operation"`
	Targets   []Target `json:"targets"`
	// Affected are further objects that the operation affects: the pods of a drain, of a NoExecute taint, of a deleted
	// namespace.
	Affected []Ref `json:"affected,omitempty"`
	// Sources are objects that the write copies from: the revision of an undo, the
	// CronJob of a run_job. They are read only, and what was approved is bound to them.
	Sources []Target `json:"sources,omitempty"`
	// NoDryRun means that the server could not dry-run it.
	NoDryRun bool `json:"no_dry_run,omitempty"`
	// At is the time that the write stores in its object, RFC 3339. It is set once, at the proposal.
	At string `json:"at,omitempty"`
}

// Digest binds an approval to exactly these operations on exactly these objects: SHA-256 over RFC 8785 JSON. It omits
// the resource version, which a status update changes without any effect on the approved change; the affected objects,
// which change independently; and the time of the proposal, since the same request a minute later is the same request.
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
		// Only strings and whole numbers: neither step can fail.
		panic(fmt.Sprintf("operation: digest: %v", err))
	}
	sum := sha256.Sum256(plain)
	return "sha256:" + hex.EncodeToString(sum[:])
}
