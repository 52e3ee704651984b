// Command control-plane serves the control plane, migrates its schema, or verifies
// an exported audit bundle.
package main

import (
	"os"

	"github.com/mlp-platform/platform/libs/service/startup"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/offline"
)

func main() {
	os.Exit(startup.Main(startup.Program[controlplane.Config]{
		Name: "control-plane", AddrVar: "CONTROL_PLANE_ADDR", Addr: "127.0.0.1:18002",
		LoadConfig: controlplane.LoadConfig,
		LogLevel:   func(c controlplane.Config) string { return c.LogLevel },
		Migrate:    controlplane.Migrate,
		Run:        controlplane.Run,
		Commands:   []startup.Command{{Name: "audit", Usage: "verify FILE  verify an exported audit bundle offline", Run: offline.Run}},
	}))
}
