//go:build tools

// Package deadcode pins the finder of unreachable functions; scripts/tool.sh builds it.
package deadcode

import _ "golang.org/x/tools/cmd/deadcode"
