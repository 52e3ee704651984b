// Package sse writes, reads and fans out server-sent events as the HTML
// standard defines them (section 9.2).
package sse
