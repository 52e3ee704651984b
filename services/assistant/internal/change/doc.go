// Package change makes the writes: it turns a typed operation into calls on its objects, dry-runs them for a proposal,
// makes them after an approval, reads back the result, and finds out after a crash whether a call took effect.
//
//	operation ──choose──▶ targets ──prepare──▶ a call each ──rehearse──▶ diff, verdict, digest
//	                         │                     ▲
//	                         └──after approval─────┴──perform──▶ answer ──verify──▶ state read
//
// A call is built from the operation and the current object, both times by the same code, and the fingerprint of the
// object is part of what was approved. So the call that runs is the one that was shown. Every call carries the uid and
// the resource version of its object, or requires that it is absent.
//
// The calls of an action run in order. The first failure ends it, and the result lists what was written and what was
// not tried.
package change
