// Package route explains which connectors may serve a piece of work, and why the others
// may not. It decides nothing and dispatches nothing.
package route
