// Package synthesis puts the reports of several benchmarks side by side: how often each strategy chose, and how
// its choices fared on each holdout.
//
// It describes. It pools no rows, tests nothing for significance and ranks no strategy.
package synthesis
