// Package promotion decides which version an alias points to. A promotion is checked
// by the gate, decided by a person, and carried out by moving the alias:
//
//	pending  → approved    approved by a person; or, under approval_mode run, by
//	                       the person who approved the training run
//	approved → promoted    the alias was moved
//	approved → failed      the tracker refused the move permanently
//	pending  → rejected | expired
//	pending  → superseded  a newer promotion of the same alias, or the alias was
//	                       moved since this one was opened
//
// Each promotion has an approval record of kind promotion that mirrors it. Each state
// change, its events and its audit fact are one transaction.
package promotion
