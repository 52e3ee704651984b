// Package investigate is the engine that needs no model: it parses a sentence, looks up the named objects, runs the
// playbooks on a snapshot, and answers.
//
// A question is answered and changes nothing. A request for a change becomes one operation whose values come from the
// user's words, an earlier revision or a spec; if one is missing, the answer requests it. Text of the cluster (logs,
// events, annotations) is quoted and decides nothing, and earlier messages only resolve what "it" means.
package investigate
