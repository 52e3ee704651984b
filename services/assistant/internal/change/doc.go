// Package change is where writes happen: it turns a typed operation into calls on the
// objects that it stands for, rehearses them for a proposal, makes them after an
// approval, reads back what came of them, and tells after a crash whether one was made.
//
//	operation ──choose──▶ targets ──prepare──▶ a call each ──rehearse──▶ diff, verdict, digest
//	                         │                     ▲
//	                         └──after approval─────┴──perform──▶ answer ──verify──▶ what is there
//
// A call is made from the operation and the object as it is, both times by the same
// code, and the fingerprint of the object is part of what was approved. So what runs is
// what was shown. Every call carries the uid and the resource version of its object, or
// must find it absent.
//
// The calls of an action run in order. The first that fails ends it, and the answer
// tells what was written before and what was left.
package change
