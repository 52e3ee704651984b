// Package controlplane tells the control plane of new versions.
package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
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
	bearer := func(_ context.Context, req *http.Request) error {
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token.Reveal())
		}
		return nil
	}
	c, err := api.NewClient(strings.TrimRight(url, "/"), api.WithHTTPClient(service.HTTPClient(timeout)), api.WithRequestEditorFn(bearer))
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

// maxAnswer bounds the answer, which has three rungs.
const maxAnswer = 1 << 20

// Version asks the control plane to apply the ladder to a version.
func (c *Client) Version(ctx context.Context, model, version, flowRunID string) (Ladder, error) {
	var out Ladder
	report := api.VersionReport{Model: model, Version: version}
	if flowRunID != "" {
		report.FlowRunId = &flowRunID
	}
	// The answer is read here and not by the generated code, which has no bound.
	resp, err := c.api.ReportVersion(ctx, report)
	if err != nil {
		if ctx.Err() != nil {
			return out, fmt.Errorf("control plane: %w", err)
		}
		return out, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		p := problem.Decode(resp)
		err := fmt.Errorf("control plane refused version %s of %s: %w", version, model, p)
		if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return out, err
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&out); err != nil {
		return out, fmt.Errorf("control plane: the answer to POST /versions is not what it should be: %w", err)
	}
	return out, nil
}
