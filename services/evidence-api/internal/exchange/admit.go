package exchange

import (
	"github.com/mlp-platform/platform/services/evidence-api/internal/admission"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
)

// Admit takes a slot for the request, which it holds until it is answered, or returns why there is none.
func (x *Exchange) Admit() *catalogue.Fault {
	slot, refusal := x.server.Admission.Enter()
	if refusal != admission.None {
		return refusalFault(refusal)
	}
	x.slot = slot
	return nil
}

// AdmitStream exchanges the request's slot for one of a stream.
func (x *Exchange) AdmitStream() *catalogue.Fault {
	if refusal := x.slot.ToStream(); refusal != admission.None {
		return refusalFault(refusal)
	}
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
