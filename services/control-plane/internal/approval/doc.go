// Package approval is the gate before a retrain. A change notice leaves one
// pending record per model; a person decides it; nothing trains before.
//
//	pending   → approving  approve: the record is locked and a durable command written
//	approving → approved   the orchestrator took the run
//	approving → pending    it did not, and nothing runs; or → expired when a newer
//	                       notice took the place meanwhile
//	pending   → rejected   reject
//	pending   → expired    too old, or superseded by a notice of another commit
//
// Each move, its event and its audit fact are one transaction.
package approval
