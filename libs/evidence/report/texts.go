package report

// Every sentence of a snapshot that does not come from the report. They are part of
// the snapshot's digest: a change of one is a change of the format, and shows in the
// golden file.
const (
	titleOverlap         = "A verifier carries its worker's id"
	whyOverlap           = "A finding under the worker's own id is a claim about itself and supports nothing."
	titleDisagreement    = "The verifiers do not agree"
	whyDisagreement      = "The attempts have different recommendations; more of one kind do not make it right."
	titleControlFailure  = "The run did not control every attempt"
	whyControlFailure    = "At least one attempt ended in an error, so its candidate was never judged."
	titleRejectedOne     = "1 attempt was rejected"
	titleRejectedMany    = "%d attempts were rejected"
	whyRejected          = "The verifier recommends against what these attempts made."
	titlePending         = "A human decision is pending"
	whyPending           = "Nothing is selected and nothing is integrated until an accountable person decides."
	independenceDistinct = "The ids are distinct. Distinct ids prove only distinct ids, not independence."
	independenceOverlap  = "The ids are the same. No independence can be claimed."
	titleObservation     = "The source run was observed"
	detailObservation    = "%d attempts, orchestrator version %s"
	detailObservationOne = "1 attempt, orchestrator version %s"
	titleWorkerError     = "The worker failed"
	titleManifestError   = "The result manifest was not usable"
	titleVerifyError     = "The verification failed"
	detailNoText         = "no text was recorded"
	titleClaim           = "The worker reported a result"
	detailClaim          = "status %s, manifest %s"
	titleEvidence        = "The verifier checked the candidate"
	detailEvidence       = "%d/%d required checks passed"
	titleRecommendation  = "The verifier gave a recommendation"
	titleAuthority       = "The decision stays with people"
	detailAuthority      = "human decision %s, integration by %s; the run itself may write, push, merge and select nothing"
)

// The actors of a timeline that the report does not name.
const (
	actorOrchestrator = "orchestrator"
	actorTower        = "svc-control-tower"
)

// interpretationRules state how to read a snapshot.
var interpretationRules = []string{
	"Worker success is not verified correctness.",
	"A verifier's advice is not a decision to integrate.",
	"Several recommendations do not make a majority truth.",
	"An equal replay is not correctness.",
}
