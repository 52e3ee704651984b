// Package loopback holds the rules that all local pages and APIs of one user share:
// who may call them, how their secrets travel and what their answers forbid a
// browser to do.
//
// Any program and any web page on the machine can reach a port on 127.0.0.1. The
// Host check keeps out pages that got the address by DNS; the token keeps out other
// users and other programs; the headers keep an answer from being framed, cached
// or read as something else.
package loopback
