// Package ground holds what a language model says against what a session has read.
//
//	text ──▶ Checker: sentence by sentence ──▶ text with marks
//	              │ looks up
//	tools ──▶ Record: texts, numbers, calls, writes, findings
//
// A claim is marked with [Mark] right behind it if no result of a tool and no word of the
// user has it. An all-clear that the findings contradict is replaced by them.
//
// The check errs on the side of honest answers, which must read as they were written: a
// word is taken for a claim by its form (kind/name, a name behind its kind, code that looks
// like a name, an image with a tag, a number), never by a list of names. What a sentence
// recommends is no claim about the cluster, except for the objects that it is to happen to.
package ground
