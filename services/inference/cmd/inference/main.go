// Command inference serves predictions or migrates the service's schema. Configuration comes from the
// environment, see docs/inference.md.
package main

import (
	"os"

	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/inference"
)

func main() {
	if code, asked := inference.ServeTrial(os.Args[1:]); asked {
		os.Exit(code)
	}
	os.Exit(startup.Main(startup.Program[inference.Config]{
		Name: "inference", AddrVar: "INFERENCE_ADDR", Addr: "127.0.0.1:18001",
		LoadConfig: inference.LoadConfig,
		LogLevel:   func(c inference.Config) string { return c.LogLevel },
		Migrate:    inference.Migrate,
		Run:        inference.Run,
	}))
}
