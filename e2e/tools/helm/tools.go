//go:build tools

// Package helm pins Helm, which checks and installs the chart; scripts/tool.sh builds it.
package helm

import _ "helm.sh/helm/v4/cmd/helm"
