// Package gate audits a gate of reviewers ("verifiers") from a matrix of their verdicts on candidates whose truth is
// known: how often each is wrong, how correlated their errors are, and how many independent votes that leaves.
//
// An audit reads one document and changes nothing. Its figures describe the matrix; they allow no routing and no merge.
//
// The editor of `svc gate-audit-ui` runs on 127.0.0.1. The matrix being edited stays in the browser; each audit is one
// request that leaves nothing behind.
//
//	GET  /            the page; under a launch code with the token, else bare
//	GET  /healthz     ok
//	POST /api/audit   a matrix in, {ok true, report} or {ok false, error} out
package gate
