// Package status reports the state of the control plane's dependencies.
package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// timeout limits the whole answer: all dependencies are queried in parallel.
const timeout = 3 * time.Second

// maxBody limits how much of an answer is read so that its connection can be reused; a larger answer closes the
// connection.
const maxBody = 64 << 10

// Neighbour is a dependency to probe.
type Neighbour struct {
	Key string
	// URL answers GET with 2xx while the dependency is healthy; empty: it is not probed.
	URL string
	// Note explains why it is not probed.
	Note string
}

// Health returns the dependency with its probe below a base URL. An empty base is not
// probed; note explains why.
func Health(key, base, note string) Neighbour {
	if base == "" {
		return Neighbour{Key: key, Note: note}
	}
	return Neighbour{Key: key, URL: strings.TrimRight(base, "/") + "/health"}
}

// Service answers GET /status.
type Service struct {
	neighbours []Neighbour
	store      *store.Store
	client     *http.Client
	log        *slog.Logger
}

// New returns a Service.
func New(s *store.Store, log *slog.Logger, neighbours ...Neighbour) *Service {
	client := service.HTTPClient(timeout)
	// A redirect is not 2xx and is not followed.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Service{neighbours: neighbours, store: s, client: client, log: log}
}

// probe queries one dependency. Only the status code of its answer counts.
func (s *Service) probe(ctx context.Context, n Neighbour) api.NeighbourStatus {
	if n.URL == "" {
		return api.NeighbourStatus{Status: api.NeighbourStatusStatusUnknown, Note: &n.Note}
	}
	begin := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL, nil)
	if err != nil {
		return api.NeighbourStatus{Status: api.NeighbourStatusStatusUnknown, Note: wire.OptionalText("the configured URL cannot be asked")}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		// The cause may contain addresses, so it goes only to the log.
		s.log.DebugContext(ctx, "neighbour does not answer", slog.String("neighbour", n.Key), slog.Any("err", err))
		note := "no connection"
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			note = fmt.Sprintf("no answer within %v", timeout)
		}
		return api.NeighbourStatus{Status: api.NeighbourStatusStatusDown, Note: &note}
	}
	defer resp.Body.Close()
	ms := float64(time.Since(begin).Microseconds()) / 1000
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody)) // only the status code counts
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return api.NeighbourStatus{Status: api.NeighbourStatusStatusDegraded, LatencyMs: &ms, Note: wire.OptionalText(fmt.Sprintf("answers %d", resp.StatusCode))}
	}
	return api.NeighbourStatus{Ok: true, Status: api.NeighbourStatusStatusOk, LatencyMs: &ms}
}
