//go:build tools

// Package staticcheck pins the linter; scripts/tool.sh builds it.
package staticcheck

import _ "honnef.co/go/tools/cmd/staticcheck"
