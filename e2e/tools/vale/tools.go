//go:build tools

// Package vale pins the checker of prose; scripts/tool.sh builds it.
package vale

import _ "github.com/vale-cli/vale/v3/cmd/vale"
