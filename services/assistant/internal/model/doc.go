// Package model is the engine that lets a language model investigate, through any endpoint of the chat-completions
// protocol.
//
//	playbooks ──▶ ask ──▶ tool calls ──▶ ask ──▶ … ──▶ answer
//	               │          └ a write: the turn proposes it, the investigation ends
//	               ├ budget spent: what is known so far, and why it stops
//	               └ model fails: the playbooks answer instead, and say so
//
// The model is not trusted. It reads only through the turn's toolbox, whose calls are typed operations. It cannot
// write: the first of its calls that would becomes a proposal, whatever the question was, and rules and a person
// decide. An approval given in advance covers a proposal only if the person's own words order a change. Data from the
// cluster reaches it only as tool output, marked as data, after redaction; never as a system or user message. Its
// answers are checked against the data read, sentence by sentence (package ground), and shown as plain text: links and
// images become code (package plain).
package model
