// Package model is the engine that lets a language model investigate, through any
// endpoint of the chat-completions protocol.
//
//	playbooks ──▶ ask ──▶ tool calls ──▶ ask ──▶ … ──▶ answer
//	               │          └ a write: the turn proposes it, the investigation ends
//	               ├ budget spent: what is known so far, and why it stops
//	               └ model fails: the playbooks answer instead, and say so
//
// The model is not trusted. It reads through the turn's toolbox alone, whose calls are
// typed operations. It cannot write: of its calls that would, the first becomes a
// proposal, whatever was asked, and rules and a person decide. What was approved in
// advance covers a proposal only if the person's own words order a change. What
// the cluster says goes to it as the output of tools, marked as data, after redaction;
// never as words of the system or the user. What it says is held against what was read,
// sentence by sentence (package ground), and shown as plain text: links and images become
// code (package plain).
package model
