package reads

import (
	"context"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/exchange"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

// Handler serves the endpoints that read the store.
type Handler struct {
	reader   *store.Reader
	timeout  time.Duration
	lifetime context.Context
	memo     memo
}

// NewHandler returns a Handler on the store of reader. A read takes no longer than
// timeout, and ends with lifetime.
func NewHandler(lifetime context.Context, reader *store.Reader, timeout time.Duration) *Handler {
	return &Handler{reader: reader, timeout: timeout, lifetime: lifetime}
}

// Serve answers from the store, or from the memo if the store's file did not change.
func (h *Handler) Serve(x *exchange.Exchange, op *route.Op, id string, values query.Values) {
	key := op.ID + " " + id + "?" + x.Request.RawQuery
	asked := time.Now()
	if h.memo.has(key) {
		stamp, settled, err := h.reader.Stamp(h.lifetime)
		if err != nil {
			x.Fail(catalogue.FromRead(err))
			return
		}
		if settled {
			if body, ok := h.memo.get(stamp, key); ok {
				x.JSON(200, body)
				return
			}
		}
	}
	look, err := lookups[op.ID](id, values)
	if err != nil {
		x.Fail(catalogue.FromRead(err))
		return
	}
	stamp, settled := h.reader.Glance()
	// The look at the file may have waited for a lock; both together wait no longer.
	patient := store.WithLockDeadline(h.lifetime, asked.Add(store.ReadWait))
	ctx, cancel := context.WithTimeout(patient, h.timeout)
	defer cancel()
	doc, err := look(ctx, h.reader)
	if err != nil {
		x.Fail(catalogue.FromRead(err))
		return
	}
	body, ok := doc.(written)
	if !ok {
		if body, err = exchange.EncodeDocument(doc); err != nil {
			x.Fail(&catalogue.Fault{Code: catalogue.InternalError, Cause: err})
			return
		}
	}
	if settled {
		h.memo.put(stamp, key, body)
	}
	x.JSON(200, body)
}
