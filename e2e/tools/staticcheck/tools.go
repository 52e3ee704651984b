//go:build tools

// Package staticcheck pins the linter and the vulnerability scanner; scripts/tool.sh builds them.
package staticcheck

import (
	_ "golang.org/x/vuln/cmd/govulncheck"
	_ "honnef.co/go/tools/cmd/staticcheck"
)
