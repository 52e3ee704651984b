// Package gateui is `svc gate-audit-ui`: an editor of verdict matrices in the browser, audited by this process on
// 127.0.0.1. The matrix being edited stays in the browser; each audit is one request that leaves nothing behind.
//
//	GET  /            the page; under a launch code with the token, else bare
//	GET  /healthz     ok
//	POST /api/audit   a matrix in, {ok true, report} or {ok false, error} out
package gateui
