package spine

import "github.com/mlp-platform/platform/libs/evidence/canon"

// The two kinds of row that hold a run, which also name the input of their
// create_request_digest.
const (
	CreatedRow  = "product-spine-cli-run"            // made by `run create`
	ImportedRow = "product-spine-idempotency-result" // made with a retained evidence report
)

// CreateRequestDigest binds the request by which a run was created. The projection
// counts as it was first stored: of a run that has moved on, take the digest of its
// projection put back to state proposed.
func CreateRequestDigest(projection Run) string { return CreateDigestOf(projection.Value()) }

// CreateDigestOf is CreateRequestDigest of a projection that is a document already.
func CreateDigestOf(projection canon.Value) string {
	return canon.Digest(canon.NewObject(
		canon.Member{Key: "kind", Value: CreatedRow},
		canon.Member{Key: "projection", Value: projection},
		canon.Member{Key: "schema_version", Value: SchemaVersion},
	))
}

// ImportRequestDigest is CreateRequestDigest of a run that was stored with its
// evidence report; put a run that has moved on back to its initial state first.
func ImportRequestDigest(projection Run, evidenceReportDigest string) string {
	return ImportDigestOf(projection.Value(), evidenceReportDigest)
}

// ImportDigestOf is ImportRequestDigest of a projection that is a document already.
func ImportDigestOf(projection canon.Value, evidenceReportDigest string) string {
	return canon.Digest(canon.NewObject(
		canon.Member{Key: "evidence_report_digest", Value: evidenceReportDigest},
		canon.Member{Key: "kind", Value: ImportedRow},
		canon.Member{Key: "projection", Value: projection},
		canon.Member{Key: "schema_version", Value: SchemaVersion},
	))
}
