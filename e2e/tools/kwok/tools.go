//go:build tools

// Package kwok pins kwok, which simulates nodes and kubelets in the tests' cluster; scripts/tool.sh builds it.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
