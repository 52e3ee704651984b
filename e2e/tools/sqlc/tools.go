//go:build tools

// Package sqlc pins the SQL code generator; scripts/tool.sh builds it.
package sqlc

import _ "github.com/sqlc-dev/sqlc/cmd/sqlc"
