// Package investigate is the engine that needs no model: it reads what a sentence asks,
// looks the named objects up, lets the playbooks judge a snapshot, and answers.
//
// A question is answered and changes nothing. A request for a change becomes one
// operation whose values stand in the user's words, in an earlier revision or in a
// spec; where one is missing, the answer asks for it. Text of the cluster (logs, events,
// annotations) is quoted and decides nothing, and what was said before only tells what
// "it" is.
package investigate
