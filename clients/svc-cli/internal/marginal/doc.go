// Package marginal measures what each further verifier would add to a panel: the current panel and the one with the
// candidate decide the same rows, and the difference between them is the candidate's marginal evidence.
//
// A report describes a matrix. It selects no verifier, and it allows no routing and no merge.
package marginal
