//go:build tools

// Package versitygw pins the object store of the trainer's test; scripts/tool.sh builds it.
package versitygw

import _ "github.com/versity/versitygw/cmd/versitygw"
