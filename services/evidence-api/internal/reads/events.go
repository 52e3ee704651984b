package reads

import (
	"bytes"
	"context"
	"errors"

	"github.com/mlp-platform/platform/libs/evidence/cursor"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/services/evidence-api/internal/exchange"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

// written is a document that is in form C1 already.
type written []byte

// firstItems is how the form C1 of a page begins: "items" is the first of its keys.
var firstItems = []byte(`{"items":[`)

// lookUpEvents answers with a page of envelopes. They come from the store in form C1; the
// page is written around them, since reading and writing each again would cost most
// of the request.
func lookUpEvents(_ string, v query.Values) (lookup, error) {
	w, err := parseWindow(v, cursor.Events)
	if err != nil {
		return nil, err
	}
	q := store.EventQuery{Window: w, EventFilter: route.EventFilter(v)}
	return func(ctx context.Context, s *store.Reader) (any, error) {
		page, err := s.Events(ctx, q)
		if err != nil {
			return nil, err
		}
		return eventPage(page, w.Limit)
	}, q.Check()
}

func eventPage(page store.Page[store.Event], limit int) (any, error) {
	frame, err := exchange.EncodeDocument(document.NewList([]any{}, limit, page.Next))
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(frame, firstItems)
	if !ok {
		return nil, errors.New("a page does not begin with its items")
	}
	size := len(frame)
	for i := range page.Items {
		size += len(page.Items[i].Envelope) + 1
	}
	body := append(make(written, 0, size), firstItems...)
	for i := range page.Items {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, page.Items[i].Envelope...)
	}
	return append(body, rest...), nil
}
