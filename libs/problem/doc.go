// Package problem is the error format of every HTTP API of the platform: RFC
// 9457 problem documents with a stable code, made from typed errors on the
// server and read back into the same type by clients.
//
// A service keeps one table of [Kind] values. Domain code returns
// Kind.New("…"); [Handler] is the only place where an error becomes bytes.
// Detail is for the caller, Cause for the log; a cause is never sent.
package problem
