// Package controlplane tells the control plane of new versions.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
)

// timeout of one call: the control plane reads the tracker before it answers.
const timeout = 15 * time.Second

// ErrUnavailable means that the control plane gave no answer, or one that says to come back later.
var ErrUnavailable = errors.New("control plane unavailable")

// Client calls one control plane.
type Client struct{ api *api.Client }

// New returns a client of the control plane at url, such as http://localhost:18002.
func New(url string, token service.Secret) (*Client, error) {
	c, err := api.NewClient(strings.TrimRight(url, "/"), api.WithHTTPClient(service.HTTPClient(timeout)), api.WithRequestEditorFn(wire.Bearer(token.Reveal())))
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	return &Client{c}, nil
}

// Ladder is what the control plane made of a version.
type Ladder struct {
	Rungs       []modelrepo.Verdict `json:"rungs"`
	AliasesSet  []string            `json:"aliases_set"`
	PromotionID string              `json:"promotion_id"`
}

// Version asks the control plane to apply the ladder to a version.
func (c *Client) Version(ctx context.Context, model, version, flowRunID string) (Ladder, error) {
	report := api.VersionReport{Model: model, Version: version}
	if flowRunID != "" {
		report.FlowRunId = &flowRunID
	}
	out, err := wire.Decode[Ladder](c.api.ReportVersion(ctx, report))
	var refusal *problem.Error
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil, errors.Is(err, wire.ErrUnreadable):
		return out, fmt.Errorf("control plane: %w", err)
	case !errors.As(err, &refusal):
		return out, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	err = fmt.Errorf("control plane refused version %s of %s: %w", version, model, refusal)
	if status := refusal.Status(); status >= 500 || status == http.StatusTooManyRequests {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return out, err
}
