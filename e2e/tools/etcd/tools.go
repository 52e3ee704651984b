//go:build tools

// Package etcd pins the store of the tests' control plane; scripts/tool.sh builds it.
package etcd

import _ "go.etcd.io/etcd/server/v3"
