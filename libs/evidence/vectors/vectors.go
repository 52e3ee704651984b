// Package vectors holds the documents, bytes and digests on which every program of
// the evidence product must agree. README.md beside this file describes each of
// them.
package vectors

import "embed"

// FS holds the *.json files.
//
//go:embed *.json
var FS embed.FS
