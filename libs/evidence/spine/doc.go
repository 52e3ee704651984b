// Package spine is the read model of runs: the projection of a run and the views
// derived from it (work units, projects), connector records, the lifecycle, the
// events and the digests that bind them. It knows neither files nor HTTP.
//
// # Lifecycle
//
//	proposed -> previewed -> admitted -> dispatched -> candidate_observed -> normalized
//	         -> verification_requested -> evidence_ready -> awaiting_human_decision -> decided
//
// with admission_blocked beside admitted, attempt_failed beside
// candidate_observed (back to dispatched) and verification_error beside
// evidence_ready (back to verification_requested). Every state but evidence_ready
// and decided may be cancelled; decided and cancelled are final. See [State.Next].
package spine
