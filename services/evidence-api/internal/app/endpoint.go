package app

import (
	"context"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/metrics"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

// endpoint answers a request that passed the common checks.
func (x *exchange) endpoint(op *route.Op, id string, values query.Values) {
	switch op.ID {
	case route.Health:
		x.text("text/plain; charset=utf-8", "ok\n")
	case route.Readiness:
		x.document(document.NewReadiness(x.app.Version))
	case route.Prometheus:
		x.text(metrics.TextType, string(x.app.counters.Document(x.app.gauges()).Text()))
	case route.Status:
		x.json(200, x.app.status)
	case route.OpenAPI:
		x.json(200, x.app.openapi)
	case route.Metrics:
		x.document(x.app.counters.Document(x.app.gauges()))
	case route.Inspect:
		x.inspect()
	default:
		x.read(op, id, values)
	}
}

// read answers from the store.
func (x *exchange) read(op *route.Op, id string, values query.Values) {
	if x.app.Reader == nil {
		x.fail(catalogue.New(catalogue.StoreNotConfigured))
		return
	}
	if op.Stream {
		x.stream(values)
		return
	}
	key := op.ID + " " + id + "?" + x.r.RawQuery
	asked := time.Now()
	if x.app.memo.has(key) {
		stamp, settled, err := x.app.Reader.Stamp(x.app.Lifetime)
		if err != nil {
			x.fail(asFault(err))
			return
		}
		if settled {
			if body, ok := x.app.memo.get(stamp, key); ok {
				x.json(200, body)
				return
			}
		}
	}
	look, err := reads[op.ID](id, values)
	if err != nil {
		x.fail(asFault(err))
		return
	}
	stamp, settled := x.app.Reader.Glance()
	// The look at the file may have waited for a lock; both together wait no longer.
	patient := store.WithLockDeadline(x.app.Lifetime, asked.Add(store.ReadWait))
	ctx, cancel := context.WithTimeout(patient, x.app.Settings.RequestTimeout)
	defer cancel()
	doc, err := look(ctx, x.app.Reader)
	if err != nil {
		x.fail(asFault(err))
		return
	}
	body, ok := doc.(written)
	if !ok {
		if body, err = encodeDocument(doc); err != nil {
			x.fail(&catalogue.Fault{Code: catalogue.InternalError, Cause: err})
			return
		}
	}
	if settled {
		x.app.memo.put(stamp, key, body)
	}
	x.json(200, body)
}
