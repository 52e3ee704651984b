// Package approval is the gate before a retrain. A change notice creates one pending record per model, and no training
// starts before a person has approved it.
//
//	pending   → approving  approve: the record is locked and a durable command written
//	approving → approved   the orchestrator accepted the run
//	approving → pending    it did not, and nothing runs; or → expired if a newer
//	                       notice superseded the record meanwhile
//	pending   → rejected   reject
//	pending   → expired    too old, or superseded by a notice of another commit
//
// Each state change, its event and its audit fact are one transaction.
package approval
