// Package drift reads drift levels, as the inference service answers and announces them, and derives alerts from them.
package drift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
)

// The kinds of drift.
const (
	Prediction = "prediction"
	Input      = "input"
)

// The levels of drift.
const (
	OK           = "OK"
	Warning      = "WARNING"
	Critical     = "CRITICAL"
	NoBaseline   = "NO_BASELINE"
	Insufficient = "INSUFFICIENT"
	Corrupt      = "CORRUPT"
)

// Reading is one measurement of a model and alias.
type Reading struct {
	Model, Alias, Kind string
	Status             string   // the level of z alone
	Overall            string   // the worst measure's level: what alerts and training follow
	DecidedBy          string   // the measure that Overall follows, if one does
	Z                  *float64 // nil where it is not a number, also with Critical
	Reason             string
	// CriticalBeside is a measure other than z that is critical; empty if none is, or if it was announced and not read.
	CriticalBeside string
}

// measures lists the measures other than z, in display order.
var measures = []string{"psi", "ks", "wasserstein"}

// zScore is the measure that determines Status.
const zScore = "z_score"

// ErrNotServed means that the inference service does not measure drift of that kind.
var ErrNotServed = errors.New("the inference service does not measure drift of this kind")

const (
	readTimeout = 5 * time.Second // for all pages of one kind
	pageRows    = 500
	maxPages    = 20
	maxPage     = 8 << 20 // bytes; a row has about 2 KiB
)

// Reader queries the inference service. It is safe for concurrent use.
type Reader struct {
	client *inference.Client
}

// NewReader returns a Reader of the service at url, with the bearer token unless it is empty. With an empty url there
// is no service, and every read fails.
func NewReader(url, token string, hc *http.Client) (*Reader, error) {
	if url == "" {
		return &Reader{}, nil
	}
	c, err := inference.NewClient(url, inference.WithHTTPClient(bounded{hc}),
		inference.WithRequestEditorFn(wire.Bearer(token)))
	if err != nil {
		return nil, fmt.Errorf("SERVING_URL: %w", err)
	}
	return &Reader{c}, nil
}

// bounded returns an error for a body that is too long.
type bounded struct{ *http.Client }

func (b bounded) Do(r *http.Request) (*http.Response, error) {
	resp, err := b.Client.Do(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxPage)
	}
	return resp, err
}

// Read returns the readings of one kind, of one model or, with an empty one, of all. The error describes the fault of
// the service or its answer in one sentence.
func (r *Reader) Read(ctx context.Context, kind, model string) ([]Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if r.client == nil {
		return nil, errors.New("SERVING_URL is not set")
	}
	var editors []inference.RequestEditorFn
	if kind == Input { // the same document at another path
		editors = append(editors, func(_ context.Context, r *http.Request) error {
			r.URL.Path = strings.TrimSuffix(r.URL.Path, "/status") + "/input/status"
			return nil
		})
	}
	limit := pageRows
	q := inference.DriftStatusParams{Limit: &limit}
	if model != "" {
		q.Model = &model
	}
	out := []Reading{}
	for range maxPages {
		resp, err := r.client.DriftStatus(ctx, &q, editors...)
		rows, err := wire.Decode[*[]inference.DriftStatus](resp, err)
		var refusal *problem.Error
		switch {
		case errors.As(err, &refusal) && kind == Input && (refusal.Status() == http.StatusNotFound || refusal.Status() == http.StatusMethodNotAllowed):
			return nil, ErrNotServed
		case errors.As(err, &refusal):
			return nil, fmt.Errorf("the inference service answered drift with status %d", refusal.Status())
		case err != nil:
			return nil, describeFailure(ctx, err)
		case rows == nil || *rows == nil:
			return nil, errors.New("the inference service answered drift with something else")
		}
		for _, row := range *rows {
			r := readingFromStatus(kind, row)
			switch {
			case r.Model == "" || r.Alias == "" || !validLevel(r.Status) || !validLevel(r.Overall):
				return nil, fmt.Errorf("the inference service answered drift with a row that cannot be used: model %q, alias %q, status %q", row.Model, row.Alias, row.Status)
			case r.sound() && (model == "" || r.Model == model): // the service may also serve unnameable models
				out = append(out, r)
			}
		}
		next := resp.Header.Get("X-Next-Cursor")
		if next == "" {
			return out, nil
		}
		q.Cursor = &next
	}
	return nil, fmt.Errorf("the inference service lists drift on more than %d pages", maxPages)
}

// describeFailure describes a transport error in one sentence, without addresses.
func describeFailure(ctx context.Context, err error) error {
	var long *http.MaxBytesError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the inference service did not answer drift within %s: %w", readTimeout, err)
	case errors.As(err, &long):
		return fmt.Errorf("the inference service answered drift with more than %d bytes", maxPage)
	case errors.Is(err, wire.ErrUnreadable):
		return fmt.Errorf("the inference service answered drift with something else: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("the inference service ended its answer early: %w", err)
	}
	return fmt.Errorf("the inference service cannot be read: %w", err)
}

func readingFromStatus(kind string, row inference.DriftStatus) Reading {
	out := Reading{Model: registry.ID(row.Model), Alias: row.Alias, Kind: kind, Status: string(row.Status), Z: row.ZScore}
	out.Overall = cmp.Or(string(row.Overall), out.Status)
	if row.Reason != nil {
		out.Reason = *row.Reason
	}
	if row.DecidedBy != nil {
		out.DecidedBy = measureName(*row.DecidedBy)
	}
	for _, name := range measures {
		if row.Measures[name].Status == Critical && out.CriticalBeside == "" {
			out.CriticalBeside = name
		}
	}
	return out
}

// measureName returns a known measure, or "": names become labels of alerts.
func measureName(s string) string {
	if s == zScore || slices.Contains(measures, s) {
		return s
	}
	return ""
}

// sound reports whether a reading has a valid model, alias and level.
func (r Reading) sound() bool {
	return registry.ValidName(r.Model) && slices.Contains(modelrepo.Aliases, r.Alias) && validLevel(r.Status) && validLevel(r.Overall)
}

func validLevel(status string) bool {
	switch status {
	case OK, Warning, Critical, NoBaseline, Insufficient, Corrupt:
		return true
	}
	return false
}
