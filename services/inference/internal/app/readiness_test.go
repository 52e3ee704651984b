package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/inference/internal/artifact"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/pyfunc"
	"github.com/mlp-platform/platform/services/inference/internal/trial"
)

// registry is a tracker. Reads of versions hang; of scans, all but the first may get page after page without an end.
type registry struct {
	models  string
	endless bool
	pages   int
}

func (r *registry) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := `{"registered_models":[` + r.models + `]}`
	switch search := strings.HasSuffix(req.URL.Path, "/registered-models/search"); {
	case !search:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case r.endless && r.pages > 0:
		select {
		case <-req.Context().Done():
			return nil, req.Context().Err()
		case <-time.After(10 * time.Second):
			answer = fmt.Sprintf(`{"registered_models":[],"next_page_token":"%d"}`, r.pages)
		}
	}
	r.pages++
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// followRegistry runs a catalog that follows the registry until the test ends.
func followRegistry(t *testing.T, r *registry) *catalog.Catalog {
	t.Helper()
	client := tracker.New("http://tracker.invalid", &http.Client{Transport: r})
	artifacts, err := artifact.New(t.TempDir(), client, true)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := trial.New(trial.Config{Dir: t.TempDir(), Memory: 1 << 30, Time: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	python, err := pyfunc.New(pyfunc.Config{RunLimit: time.Second, Sessions: 1, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	cat := catalog.New(catalog.Config{
		Tracker: client, Artifacts: artifacts, Trials: trials, Pyfunc: python, Metrics: metrics.New(prometheus.NewRegistry()), Log: log,
		Aliases: []string{catalog.Production}, Poll: 10 * time.Second, Patience: time.Second, RunLimit: time.Second, Threads: 1, Sessions: 1, BatchRows: 1, Waiting: 1,
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cat.Run(ctx, nil) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		cat.Close()
	})
	return cat
}

// expectAliases compares the check with the expected one, some time later.
func expectAliases(t *testing.T, cat *catalog.Catalog, later time.Duration, want service.Check) {
	t.Helper()
	<-time.After(later)
	synctest.Wait()
	if got := checkAliases(cat, time.Now()); got.Status != want.Status || got.Detail != want.Detail {
		t.Errorf("%v later: got %+v, want %+v", later, got, want)
	}
}

// A replica whose scan neither ends nor fails reports the age of the last one.
func TestReadinessKnowsAnOverdueScan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cat := followRegistry(t, &registry{endless: true})
		expectAliases(t, cat, time.Second, service.Check{Status: service.OK})
		expectAliases(t, cat, 88*time.Second, service.Check{Status: service.OK})
		expectAliases(t, cat, 2*time.Second, service.Check{Status: service.Warn, Detail: "the registry was last read 1m31s ago"})
	})
}

// A version that has been loading for long is named, with for how long.
func TestReadinessKnowsALongLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cat := followRegistry(t, &registry{models: `{"name":"m","aliases":[{"alias":"Production","version":"1"}]}`})
		expectAliases(t, cat, time.Second, service.Check{Status: service.Fail, Detail: "what the registry names is still being loaded"})
		expectAliases(t, cat, 58*time.Second, service.Check{Status: service.OK})
		expectAliases(t, cat, 2*time.Second, service.Check{Status: service.Warn, Detail: "version 1 of M has been loading for 1m1s"})
	})
}
