// Package dispatch sends training runs to the orchestrator: it resolves the
// deployment that they run as, limits concurrent calls, retries within a time
// budget, and stops calling an orchestrator that does not answer (a circuit
// breaker shared by all replicas).
package dispatch
