// Package trackerd emulates an MLflow 3 tracking server: the part of its REST interface that the official Python client
// and the platform use, with rows in Postgres and artifacts in a folder.
//
// Every answer follows its commit. Changes of one run, model or experiment are serialised by the lock of its row, so
// that no race changes a parameter, repeats a version number or moves an alias in more than one step.
//
// Where a real server answers a client's mistake with a stack trace or HTTP 500, this one returns
// INVALID_PARAMETER_VALUE; its clients retry a 500 for minutes.
//
// Prompts are kept as the real registry keeps them, as registered models with a tag; they have no webhooks. Not
// offered: traces, evaluation datasets, gateways, jobs, workspaces, users, multipart uploads.
package trackerd
