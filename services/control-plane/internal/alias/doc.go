// Package alias moves a model's aliases in the tracker and keeps the history of
// who held them. The tracker is another system, so a move is three steps that
// survive a crash between any two:
//
//	moving  the intent, written in the transaction that decided the move
//	        (then the tracker is told, which may be repeated)
//	moved   history, event and audit fact, in one transaction
//	failed  the tracker refused, or somebody else moved the alias meanwhile
//
// Every move of a model's aliases happens under the lease alias:<model>, after
// the tracker was read again. What is found there that no intent explains was
// done by others, and is recorded as external.
package alias
