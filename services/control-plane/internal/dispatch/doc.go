// Package dispatch hands training runs to the orchestrator: it knows the
// deployment they run as, bounds how many calls wait at once, retries within a
// budget, and stops calling an orchestrator that does not answer (a breaker
// shared by all replicas).
package dispatch
