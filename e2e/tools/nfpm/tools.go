//go:build tools

// Package nfpm pins the tool that makes the Debian packages of a release; scripts/tool.sh builds it.
package nfpm

import _ "github.com/goreleaser/nfpm/v2/cmd/nfpm"
