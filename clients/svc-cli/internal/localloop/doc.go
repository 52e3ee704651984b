// Package localloop is the two-attempt reference loop: it takes two workers' claims about
// their results for one work unit, lets a deterministic verifier judge each, and records
// claims and observations. It runs no worker, selects nothing and integrates nothing.
//
//	read config, work unit, control      a fault ends the run before anything is written
//	for each attempt, separately:
//	    worker_error                     the worker made nothing
//	    result_manifest_error            its manifest cannot be used
//	    verification_error               the verifier cannot judge it
//	    verified                         the verifier judged it, one way or another
//	write all files into a new folder    under a temporary name, then renamed
//
// Everything is read below the folder of the config, without following links. Two runs
// over the same files make the same record and the same report, to the byte; only a
// verification result records when and where it was made.
package localloop
