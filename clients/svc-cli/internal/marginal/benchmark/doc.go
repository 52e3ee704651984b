// Package benchmark compares strategies of choosing the next verifier of a panel. Each strategy chooses on one matrix,
// the design; its choice is measured on another, the holdout.
//
// The choices are fixed and digested before any verdict of the holdout is evaluated, so that the holdout cannot
// influence them; the digest of the plan lets a reader check that.
package benchmark
