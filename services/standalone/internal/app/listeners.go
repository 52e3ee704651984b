package app

import (
	"net"

	"github.com/mlp-platform/platform/services/standalone/internal/portcheck"
)

// listeners are the addresses taken before anything starts, so that a port in use is the first error reported.
type listeners struct {
	dashboard, tools, inference, inferenceGRPC, controlPlane, evidence, assistant, bus, tracker, orchestrator net.Listener
	postgres                                                                                                  net.Listener // nil without PLATFORM_POSTGRES_PORT
}

func (p *platform) listen() (*listeners, error) {
	ls := &listeners{}
	for _, a := range p.cfg.addresses() {
		if a.name == "NATS" {
			if err := portcheck.Free(a.addr, a.name, a.env); err != nil {
				ls.close()
				return nil, err
			}
			continue
		}
		l, err := portcheck.Listen(a.addr, a.name, a.env)
		if err != nil {
			ls.close()
			return nil, err
		}
		// Publish the bound address, not the configured one: localhost may be more than one address.
		addr := l.Addr().String()
		switch a.name {
		case "dashboard":
			ls.dashboard, p.cfg.DashboardAddr = l, addr
		case "dashboard tools":
			ls.tools, p.cfg.ToolsAddr = l, addr
		case "inference":
			ls.inference, p.cfg.InferenceAddr = l, addr
		case "inference gRPC":
			ls.inferenceGRPC, p.cfg.InferenceGRPC = l, addr
		case "control plane":
			ls.controlPlane, p.cfg.ControlPlaneAddr = l, addr
		case "evidence API":
			ls.evidence, p.cfg.EvidenceAddr = l, addr
		case "assistant":
			ls.assistant, p.cfg.AssistantAddr = l, addr
		case "bus bridge":
			ls.bus, p.cfg.BusAddr = l, addr
		case "tracker":
			ls.tracker, p.cfg.TrackerAddr = l, addr
		case "Postgres":
			ls.postgres = l
		case "orchestrator":
			ls.orchestrator, p.cfg.OrchestratorAddr = l, addr
		}
	}
	return ls, nil
}

// close is harmless on listeners that a server has closed.
func (ls *listeners) close() {
	for _, l := range []net.Listener{ls.dashboard, ls.tools, ls.inference, ls.inferenceGRPC, ls.controlPlane, ls.evidence, ls.assistant, ls.bus, ls.tracker, ls.orchestrator, ls.postgres} {
		if l != nil {
			_ = l.Close()
		}
	}
}
