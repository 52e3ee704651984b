package store

import (
	"context"
	"errors"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// ImportEvidence is a request to store a run together with its evidence report.
// The caller gives either Projection, or ProjectID and SourceRevision, from which,
// with the report, the projection is built.
type ImportEvidence struct {
	Report          canon.Value // as parsed; held against every rule of a report
	Projection      *spine.Run
	ProjectID       string
	SourceRevision  string
	State           spine.State   // evidence_ready or awaiting_human_decision, the default; for a built projection
	SourceRunRecord *canon.Object // nil, or the record that the report was made from
	IdempotencyKey  string        // the caller's; trimmed, 1-256 characters
	At              time.Time     // zero: now
}

// ImportEvidence stores the run, its report and its event. Replay and conflict are
// those of [Writer.CreateRun].
func (w *Writer) ImportEvidence(ctx context.Context, in ImportEvidence) (Written, error) {
	key, err := spine.IdempotencyKey(in.IdempotencyKey)
	if err != nil {
		return Written{}, invalidKey(err)
	}
	found, err := report.Read(in.Report)
	if err != nil {
		return Written{}, err
	}
	digest := canon.Digest(in.Report)
	projection, err := in.projection(found)
	if err != nil {
		return Written{}, err
	}
	var record canon.Value
	if in.SourceRunRecord != nil {
		record = in.SourceRunRecord
		if err := checkRunRecord(record, found); err != nil {
			return Written{}, newFault(InvalidRunEvidence, "The run record cannot be kept: %v.", err)
		}
	}
	create := spine.ImportRequestDigest(projection, digest)
	manifests, verifications := digestsOf(found)
	metadata := recordObject(spine.ImportedRow, create, projection)
	metadata.Set("initial_state", string(projection.State))
	metadata.Set("source_run_record", record)
	metadata.Set("evidence_report", in.Report)
	metadata.Set("result_manifest_digests", manifests)
	metadata.Set("verification_result_digests", verifications)
	return w.insert(ctx, insertRun{
		projection: projection, key: spine.ImportKeyPrefix + key, digest: create, at: in.At, metadata: metadata,
		evidence: &spine.EvidenceRef{Kind: report.Kind, Digest: digest},
	})
}

// checkRunRecord reports whether record is the one that the report was made from.
func checkRunRecord(record canon.Value, found *report.Report) error {
	if err := spine.CheckStorable(record); err != nil {
		return err
	}
	if canon.Digest(record) != found.SourceRunDigest {
		return errors.New("it does not have the report's source_run_digest")
	}
	return nil
}

// digestsOf returns the digests that a report names, by attempt: of the workers'
// manifests and of the verifiers' results.
func digestsOf(found *report.Report) (manifests, verifications *canon.Object) {
	manifests, verifications = canon.NewObject(), canon.NewObject()
	for _, a := range found.ByOrder() {
		if a.Worker != nil {
			manifests.Set(a.AttemptID, a.Worker.ResultManifestDigest)
		}
		if a.Verifier != nil {
			verifications.Set(a.AttemptID, a.Verifier.VerificationSemanticDigest)
		}
	}
	return manifests, verifications
}

// projection returns the given projection, if it agrees with the report, or one
// made from the report.
func (in ImportEvidence) projection(found *report.Report) (spine.Run, error) {
	if in.Projection == nil {
		state := in.State
		if state == "" {
			state = spine.AwaitingHumanDecision
		}
		return found.Run(in.ProjectID, in.SourceRevision, state)
	}
	given := in.Projection.Clone()
	if err := given.Check(); err != nil {
		return given, err
	}
	return given, found.Agrees(given)
}

// Evidence is a retained report that has the digest its run names.
type Evidence struct {
	RunID  string
	Digest string // evidence_report_digest
	Report *canon.Object
}

// Evidence reads the report that a run retains.
func (r *Reader) Evidence(ctx context.Context, id string) (evidence Evidence, err error) {
	err = r.source.read(ctx, func(t tx) error {
		row, err := t.runRow(id)
		if err != nil {
			return err
		}
		if row.foreign() {
			return foreignRun(id)
		}
		rec, err := row.record()
		if err != nil {
			return err
		}
		found, err := rec.evidence(id)
		if err != nil {
			return err
		}
		if err := row.check(rec); err != nil {
			return err
		}
		if err := row.checkEvents(rec); err != nil {
			return err
		}
		evidence = Evidence{RunID: id, Digest: *rec.projection.EvidenceReportDigest, Report: rec.imported.report.(*canon.Object)}
		return rec.checkAgainst(id, found)
	})
	return evidence, err
}

// evidence reads the retained report and checks that it is the one that is named.
func (rec *record) evidence(id string) (*report.Report, error) {
	named := rec.projection.EvidenceReportDigest
	if named == nil {
		return nil, &Error{Code: EvidenceNotAvailable, ID: id, Message: "The run retains no evidence report."}
	}
	wrong := func(reason string) error {
		return &Error{Code: EvidenceIntegrityError, ID: id, Reason: reason,
			Message: "The retained report is not the one that the run names: " + reason + "."}
	}
	if rec.imported == nil || rec.imported.report == nil {
		return nil, wrong("it is absent")
	}
	found, err := report.Read(rec.imported.report)
	if err != nil {
		return nil, wrong("it is no valid report")
	}
	if canon.Digest(rec.imported.report) != *named {
		return nil, wrong("it has another digest")
	}
	if found.RunID != rec.projection.RunID {
		return nil, wrong("it is another run's")
	}
	return found, nil
}

// checkAgainst compares the row's other columns with the report.
func (rec *record) checkAgainst(id string, found *report.Report) error {
	manifests, verifications := digestsOf(found)
	if canon.Digest(manifests) != canon.Digest(rec.imported.manifests) ||
		canon.Digest(verifications) != canon.Digest(rec.imported.verifications) {
		return corruptFault(id, "the digests of manifests or verifications are not those of the report")
	}
	if rec.imported.sourceRunRecord != nil {
		if err := checkRunRecord(rec.imported.sourceRunRecord, found); err != nil {
			return corruptFault(id, "source_run_record: %v", err)
		}
	}
	return nil
}
