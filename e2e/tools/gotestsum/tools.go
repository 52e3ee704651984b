//go:build tools

// Package gotestsum pins the test runner's front end; scripts/tool.sh builds it.
package gotestsum

import _ "gotest.tools/gotestsum"
