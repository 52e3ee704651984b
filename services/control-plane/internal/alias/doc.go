// Package alias moves a model's aliases in the tracker and keeps the history of their
// holders. The tracker is a separate system, so a move has three steps and survives a
// crash between any two:
//
//	moving  the intent, written in the transaction that decided the move
//	        (then the tracker is called, which may be repeated)
//	moved   history, event and audit fact, in one transaction
//	failed  the tracker refused, or someone else moved the alias meanwhile
//
// Every move of a model's aliases happens under the lease alias:<model>, after the tracker was read again. A change
// found there that no intent explains was made by others. It is recorded as external and followed, except for
// Production under an enforced gate: that move is put back, and a promotion in the mover's name requests it.
package alias
