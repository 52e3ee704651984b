// Package question parses plain English: what a sentence asks about a cluster, or requests to change. It knows no
// cluster; names are candidates until the caller looks them up.
//
// Parsing errs on one side. A sentence is a request for a change only if it begins with the change, is not denied,
// conditional or postponed, and has no part that was not understood. All else is a question, and a question never
// changes anything.
package question
