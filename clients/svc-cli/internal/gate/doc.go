// Package gate audits a gate of reviewers ("verifiers") from a matrix of their verdicts on candidates whose truth is
// known: how often each is wrong, how far they are wrong together, and how many independent votes that leaves.
//
// An audit reads one document and changes nothing. Its figures describe the matrix; they allow no routing and no merge.
package gate
