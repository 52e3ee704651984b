// Command bus-bridge answers predictions and starts training runs for producers on the message bus. Configuration comes
// from the environment, see docs/bus.md.
package main

import (
	"os"

	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/inference"
)

func main() {
	os.Exit(startup.Main(startup.Program[inference.BridgeConfig]{
		Name: "bus-bridge", AddrVar: "BUS_ADDR", Addr: "127.0.0.1:18003",
		LoadConfig: inference.LoadBridgeConfig,
		LogLevel:   func(c inference.BridgeConfig) string { return c.LogLevel },
		Run:        inference.RunBridge,
	}))
}
