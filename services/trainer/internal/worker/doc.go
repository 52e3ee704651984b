// Package worker carries out the flow runs of an orchestrator, a Prefect 3 server or the stand-in, each as a child
// process.
//
// A run moves as follows; every arrow is a state that this package proposes and the orchestrator's rules accept:
//
//	SCHEDULED ─► PENDING ─► RUNNING ─► COMPLETED | FAILED | CANCELLED | CRASHED
//	    ▲           │          │
//	    └───────────┴──────────┘  AwaitingRetry: the worker was stopped, or died and came back
//
// PENDING is the claim: the orchestrator refuses it to a second worker. This worker's claims are kept in a journal on
// disk, written before the claim, so that after a kill the next process with the same journal hands its runs back, and
// reports ends that the orchestrator could not be sent. A child never outlives its worker. A run whose worker sends no
// more heartbeats is set to CRASHED by any other worker of the pool.
package worker
