// Package connectors knows connectors: the profiles in which people describe them, the
// records that are kept of them, and the fake drivers that are probed offline.
//
// A profile never holds a secret. It names at most a variable of the environment
// (auth.secret_ref, "env:NAME"), which nothing here reads; a key that is named like a
// credential anywhere else is refused before any other check, and no fault quotes a
// value.
package connectors
