// Package gatestat is the arithmetic behind the gate reports: sums rounded once, the correlation of error vectors, the
// error of panels of independent verifiers and the resulting worth of a panel, and the bootstrap.
//
// A figure must come out the same on every machine and in every other implementation, to the last digits. So sums of
// floats are exact before they are rounded, and what can be counted is counted in integers.
package gatestat
