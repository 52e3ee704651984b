package controlplanetest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
)

// childEnv makes the test binary run a control plane instead of tests.
const childEnv = "CONTROL_PLANE_TEST_CHILD"

// Main is the TestMain of packages that use Spawn.
func Main(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(runChildProcess())
	}
	testenv.Main(m)
}

// runChildProcess is the main of the process that crash tests kill.
func runChildProcess() int {
	cfg, err := controlplane.LoadConfig(os.Environ())
	if err == nil {
		cfg.SoleProcess = os.Getenv(childEnv) == "sole"
		err = controlplane.Run(context.Background(), cfg, service.NewLogger(os.Stderr, cfg.LogLevel))
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// Spawn runs the control plane as a child process; kill is kill -9.
func (p *Plane) Spawn(kind string) (kill func()) {
	p.T.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.T.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	p.URL = "http://" + addr
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), p.Env...), childEnv+"="+kind, "CONTROL_PLANE_ADDR="+addr)
	cmd.Stdout, cmd.Stderr = p.T.Output(), p.T.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.T.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed, so it always returns an error
		}
	}
	p.T.Cleanup(kill)
	p.Ready()
	return kill
}
