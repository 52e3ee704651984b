//go:build tools

// Package alertmanager pins Alertmanager, which sends alerts to the assistant in its tests; scripts/tool.sh builds it.
package alertmanager

import _ "github.com/prometheus/alertmanager/cmd/alertmanager"
