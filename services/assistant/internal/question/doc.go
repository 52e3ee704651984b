// Package question reads plain English: what a sentence asks about a cluster, or what
// it asks to change. It knows no cluster; names are candidates until somebody looks
// them up.
//
// Reading errs on one side. A sentence is a request for a change only if it begins
// with the change, is not denied, not conditional and not put off, and holds nothing
// that was not understood. All else is a question, and a question never changes anything.
package question
