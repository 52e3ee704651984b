// Package action keeps the writes that were proposed: who asked for what, who decided,
// and what became of it. An action is a row, not somebody waiting; it outlives every
// process.
//
//	            ┌─denial, session deleted──▶ denied
//	            ├─expires_at passed────────▶ expired
//	pending ────┤
//	            ├─target has changed───────▶ stale (a fresh pending action takes its place)
//	            └─approval─▶ approved ──claim──▶ executing ─┬─▶ succeeded
//	                                                        ├─▶ failed
//	                                                        └─▶ unknown
//
// Each move is one conditional update, so of two that want to make it, in whichever
// replica, one does and the other learns who was first. The event and the audit fact of
// a move are in its transaction.
//
// An approval is bound to a digest of the expanded operations and the state of their
// targets. It is computed anew at the decision and before the call; where it differs,
// nothing is written.
//
// Whoever executes holds a lease with a fence. The versions that the call is bound to are
// committed before the call. After a crash the lease runs out, and a rescuer looks at
// the target: unmoved, the call is made, under the same versions, so that a former holder
// that only slept cannot write a second time; our effect is there, that is recorded; in
// any other case the outcome is unknown and nothing is repeated.
package action
