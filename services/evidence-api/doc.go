// Package evidenceapi is the evidence read API: a loopback server over one evidence store.
package evidenceapi
