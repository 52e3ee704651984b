// Package trackerd stands in for an MLflow 3 tracking server: the part of its
// REST interface that the official Python client and the platform use, with
// rows in Postgres and artifacts in a folder.
//
// Every answer follows its commit. Changes of one run, model or experiment are
// in a line, under the lock of its row, so that parameters cannot be changed by
// a race, version numbers are given once and an alias goes over in one step.
//
// Where a real server answers with a stack trace or HTTP 500 to a mistake of
// the caller, this one gives INVALID_PARAMETER_VALUE; its clients try a 500
// again for minutes.
//
// Prompts are kept as the real registry keeps them, as registered models with a
// tag; they have no webhooks. Not offered: traces, evaluation datasets, gateways,
// jobs, workspaces, users, multipart uploads.
package trackerd
