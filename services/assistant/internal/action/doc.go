// Package action stores proposed writes: who requested what, who decided, and the outcome. An action is a row, not a
// waiting goroutine or connection; it outlives every process.
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
// The executor holds a lease with a fence. The versions that the call is bound to are committed before the call. After
// a crash the lease expires, and a rescuer looks at the target: if it has not changed, the call is made with the same
// versions, so that a former holder that only slept cannot write a second time; if it shows our effect, that is
// recorded; in any other case the outcome is unknown and nothing is repeated.
package action
