//go:build tools

// Package govulncheck pins the scanner of Go vulnerabilities; scripts/tool.sh builds it.
package govulncheck

import _ "golang.org/x/vuln/cmd/govulncheck"
