package app

import (
	"github.com/mlp-platform/platform/services/evidence-api/internal/admission"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/metrics"
)

// admit takes a slot for the request, or says why there is none.
func (x *exchange) admit() *catalogue.Fault {
	slot, refusal := x.app.Admission.Enter()
	if refusal != admission.None {
		return refusalFault(refusal)
	}
	x.slot = slot
	return nil
}

func refusalFault(r admission.Refusal) *catalogue.Fault {
	switch r {
	case admission.Draining:
		return catalogue.New(catalogue.ShuttingDown)
	case admission.TooManyStreams:
		return catalogue.New(catalogue.TooManyStreams)
	}
	return catalogue.New(catalogue.Overloaded)
}

// gauges is what the metrics tell besides the counters.
func (a *App) gauges() metrics.Gauges {
	s := a.Admission.Stats()
	return metrics.Gauges{
		Version: a.Version, StoreConfigured: a.Reader != nil,
		Requests: s.Requests, MaxRequests: s.MaxRequests, Streams: s.Streams, MaxStreams: s.MaxStreams,
		Overloaded: s.Overloaded, Drained: s.Drained,
	}
}
