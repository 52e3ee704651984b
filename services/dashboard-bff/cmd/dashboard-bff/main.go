// Command dashboard-bff serves the dashboard or migrates its schema. Configuration comes from the
// environment, see docs/dashboard.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/mlp-platform/platform/libs/service/startup"
	dashboard "github.com/mlp-platform/platform/services/dashboard-bff"
)

func main() {
	os.Exit(startup.Main(startup.Program[dashboard.Config]{
		Name: "dashboard-bff", AddrVar: "DASHBOARD_ADDR", Addr: "127.0.0.1:8099",
		LoadConfig: dashboard.LoadConfig,
		LogLevel:   func(c dashboard.Config) string { return c.LogLevel },
		Migrate:    dashboard.Migrate,
		Run:        dashboard.Run,
		Commands: []startup.Command{{
			Name: "rotate-secrets", Usage: "rotate-secrets  seal stored secrets with the first key of DASHBOARD_SECRET_KEY", Run: rotateSecrets,
		}},
	}))
}

// rotateSecrets needs no argument; it may be repeated, and run beside serving replicas.
func rotateSecrets(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintln(stderr, "dashboard-bff: rotate-secrets takes no arguments")
		return startup.ExitUsage
	}
	cfg, err := dashboard.LoadConfig(os.Environ())
	if err == nil {
		var n int
		if n, err = dashboard.RotateSecrets(context.Background(), cfg); err == nil {
			fmt.Fprintf(stdout, "%d secrets sealed anew\n", n)
			return startup.ExitOK
		}
	}
	fmt.Fprintf(stderr, "dashboard-bff: %v\n", err)
	return startup.ExitFailed
}
