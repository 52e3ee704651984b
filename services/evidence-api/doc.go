// Package evidenceapi is the evidence read API: a server on the loopback interface
// that serves the runs, the retained evidence, the connectors and the event log of one
// store, and inspects reports sent to it. It writes nothing.
//
// A request passes admission and the checks of internal/app in a fixed order; a handler
// then answers from the store or the report. [Run] serves until its context ends and then drains:
//
//	serving -> draining (all but /healthz get shutting_down; streams get their marker)
//	        -> done, with the last request, after the drain time, or on abort
package evidenceapi

//go:generate go run ./internal/openapi/generate ../../clients/go/controltower/openapi.json
