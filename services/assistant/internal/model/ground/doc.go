// Package ground checks the answers of a language model against the data that a session has read.
//
//	text ──▶ Checker: sentence by sentence ──▶ text with marks
//	              │ looks up
//	tools ──▶ Record: texts, numbers, calls, writes, findings
//
// A claim is followed by [Mark] if it occurs in no tool result and no message of the user. An all-clear that the
// findings contradict is replaced by them.
//
// When in doubt the check leaves an answer unmarked, so that honest answers stay as written: a word counts as a claim
// by its form (kind/name, a name after its kind, code that looks like a name, an image with a tag, a number), never by
// a list of names. A recommendation makes no claim about the cluster, except about the objects that it applies to.
package ground
