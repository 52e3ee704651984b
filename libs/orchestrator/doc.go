// Package orchestrator is a client of Prefect 3's REST interface, whichever
// server implements it: a Prefect server or the stand-in of the standalone
// program.
//
// It knows the part the platform uses: flows, deployments, flow runs and their
// states, logs, work pools. Each call is one attempt; how often to try again
// and when to stop asking is the caller's decision, because only the caller
// knows whether it gave an idempotency key.
//
// Failures come in three kinds. [ErrUnreachable]: no whole answer arrived, so
// the call may or may not have been carried out. [*Error]: the orchestrator
// answered with another status than 2xx; [ErrNotFound] matches its 404. A
// cancelled context stays [context.Canceled].
package orchestrator
