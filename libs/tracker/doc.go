// Package tracker is a client of the MLflow 3 REST interface: experiments, runs,
// the model registry with its aliases, and artifacts that the tracking server
// itself hands out (the mlflow-artifacts scheme).
//
// A call whose context has no deadline gets one. Reads are retried, at most
// [Attempts] times in all, when the server cannot be reached or reports that it
// is busy; writes never are, since a write that was cut off may have happened.
//
// Errors are of two kinds: [*Error] is an answer of the server, and an error
// that matches [ErrUnavailable] means that there was none, or that the same call
// may succeed later.
package tracker
