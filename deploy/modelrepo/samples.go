// Package modelrepo carries the sample model repository inside the binary.
package modelrepo

import "embed"

// Files are the repository's files, as they are committed on first start.
//
//go:embed README.md models datasets registries data
var Files embed.FS
