// Package sse sends and reads streams of server-sent events (HTML standard, section 9.2) over HTTP.
package sse
