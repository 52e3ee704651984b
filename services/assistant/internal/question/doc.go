// Package question parses plain English: what a sentence asks about a cluster, or requests to change. A word is read
// because a rule has it in a pattern or a set (see Pattern and Words), and is a name because the cluster has something
// with that name, which the caller looks up (see Named). No list of English words is kept.
//
// Parsing errs on one side. A sentence is a request for a change only if it begins with the change, is not denied,
// conditional or postponed, and has no part that was not understood. All else is a question, and a question never
// changes anything.
package question
