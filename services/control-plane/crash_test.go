package controlplane_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
)

// childEnv makes this test binary run a control plane instead of tests.
const childEnv = "CONTROL_PLANE_TEST_CHILD"

// child is the main of the process that crash tests kill.
func child() int {
	cfg, err := controlplane.LoadConfig(os.Environ())
	if err == nil {
		cfg.SoleProcess = os.Getenv(childEnv) == "sole"
		err = controlplane.Run(context.Background(), cfg, service.NewLogger(os.Stderr, cfg.LogLevel))
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// spawn runs the control plane as a child process; kill is kill -9.
func (p *plane) spawn(kind string) (kill func()) {
	p.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	p.url = "http://" + addr
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), p.env...), childEnv+"="+kind, "CONTROL_PLANE_ADDR="+addr)
	cmd.Stdout, cmd.Stderr = p.t.Output(), p.t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // its error is the kill
		}
	}
	p.t.Cleanup(kill)
	p.ready()
	return kill
}

// Acceptance row 12: a control plane killed in the middle of an approval leaves
// exactly one flow run, whichever side of the dispatch the kill falls on.
func TestRow12KilledMidApprove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode    string // of the orchestrator until the kill
		carried bool   // it has made the run by then
	}{
		"between command and dispatch": {mode: hang},
		"between dispatch and record":  {mode: swallow, carried: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := neighbours(t)
			kill := p.spawn("sole")
			id := p.notice("JPCP", "row12")
			p.awaitTarget()
			p.orchestrator.set(c.mode)
			go func() { _, _ = p.try("POST", "/approve/JPCP", operator, nil) }() // its answer dies with the process
			if c.carried {
				<-p.orchestrator.created
			}
			testenv.Eventually(t, 10*time.Second, func() error {
				if s := p.approval(id)["status"]; s != "approving" {
					return fmt.Errorf("status %v", s)
				}
				return nil
			})
			kill()
			p.orchestrator.set(well)
			p.spawn("sole")
			var rec map[string]any
			testenv.Eventually(t, 30*time.Second, func() error {
				if rec = p.approval(id); rec["status"] != "approved" {
					return fmt.Errorf("record %v", rec)
				}
				return nil
			})
			runs := p.orchestrator.all()
			if len(runs) != 1 || runs[0].ID != rec["prefect_run_id"] || runs[0].IdempotencyKey != "approval:"+id {
				t.Fatalf("flow runs %v, record %v", runs, rec)
			}
			if rec["resolved_by"] != "operator" {
				t.Fatalf("resolved_by %v", rec["resolved_by"])
			}
			for _, e := range []string{"approval.approved", "job.dispatched"} {
				if got := p.events(e); len(got) != 1 {
					t.Errorf("%d events %s", len(got), e)
				}
			}
		})
	}
}

// Without the word that it is alone, a process waits for the lease of the dead one.
func TestCommandIsTakenOverAfterItsLease(t *testing.T) {
	t.Parallel()
	p := neighbours(t, "COMMAND_LEASE_SECONDS=15")
	kill := p.spawn("one of many")
	id := p.notice("JPCP", "lease")
	p.awaitTarget()
	p.orchestrator.set(swallow)
	go func() { _, _ = p.try("POST", "/approve/JPCP", operator, nil) }()
	<-p.orchestrator.created
	kill()
	p.orchestrator.set(well)
	p.spawn("one of many")
	if s := p.approval(id)["status"]; s != "approving" {
		t.Fatalf("status %v right after the restart", s)
	}
	p.refused(409, "approval_in_progress", "POST", "/approve/JPCP", operator, nil)
	testenv.Eventually(t, 60*time.Second, func() error {
		if s := p.approval(id)["status"]; s != "approved" {
			return fmt.Errorf("status %v", s)
		}
		return nil
	})
	if n := len(p.orchestrator.all()); n != 1 {
		t.Fatalf("%d flow runs", n)
	}
}

// A kill between the tracker's alias move and its record leaves the move to be
// found again: history, event and promotion appear once.
func TestKilledMidPromotion(t *testing.T) {
	t.Parallel()
	p := neighbours(t)
	kill := p.spawn("sole")
	v := p.tracker.add("mack", good("accuracy", 0.9))
	p.want(200, "POST", "/versions", trainer, map[string]any{"model": "MACK", "version": v})
	id := p.pendingPromotion("MACK")
	drain(p.tracker.seen)
	p.tracker.set(swallow)
	go func() { _, _ = p.try("POST", "/promotions/"+id+"/approve", operator, nil) }()
	<-p.tracker.seen
	kill()
	p.tracker.set(well)
	p.spawn("sole")
	testenv.Eventually(t, 90*time.Second, func() error {
		if s := p.promotion(id)["state"]; s != "promoted" {
			return fmt.Errorf("state %v", s)
		}
		return nil
	})
	if n := len(p.events("deploy.promoted")); n != 1 {
		t.Fatalf("%d events deploy.promoted", n)
	}
	items := p.want(200, "GET", "/alias-history?model=mack&alias=production", reader, nil).object(t)["items"].([]any)
	if len(items) != 1 || items[0].(map[string]any)["via"] != "promotion" {
		t.Fatalf("history %v", items)
	}
}

func drain(c chan struct{}) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}
