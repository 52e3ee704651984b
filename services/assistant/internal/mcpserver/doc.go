// Package mcpserver offers the assistant to programs that speak the Model Context Protocol: the registry's tools, which
// read, and propose_change, whose action a person approves elsewhere. There is no tool that decides.
//
// The server keeps no session of the protocol, so that any replica answers any request. Each request carries a key, and
// what its caller may do follows from its role, as in chat.
package mcpserver
