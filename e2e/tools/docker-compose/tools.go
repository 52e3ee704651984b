//go:build tools

// Package tools pins docker compose for machines whose Docker has no compose plugin.
package tools

import _ "github.com/docker/compose/v5/cmd"
