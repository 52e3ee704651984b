// Package mcpclient lets a language model use the tools of other servers, over the Model Context Protocol.
//
//	file ──▶ servers ──▶ connect, list, refresh ──▶ tools that are offered
//	              ▲                │ away: its tools are absent, and it is tried again
//	              └────────────────┘
//	a read ──▶ turn.Tools ──▶ the server ──▶ text: redacted, cut, untrusted
//	a write ──▶ turn.Planner ──▶ an action ──▶ a person ──▶ action.Cluster ──▶ the server
//
// The admin's file decides which tools are offered and which of them change something. A server's own declarations may
// remove a tool, and never add one. Its names, descriptions, schemas and answers are untrusted text.
package mcpclient
