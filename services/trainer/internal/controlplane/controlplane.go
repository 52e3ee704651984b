// Package controlplane tells the control plane of new versions.
package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
)

// timeout of one call: the control plane reads the tracker before it answers.
const timeout = 15 * time.Second

// ErrUnavailable means that the control plane gave no answer, or one that says to come back later.
var ErrUnavailable = errors.New("control plane unavailable")

// Client calls one control plane.
type Client struct {
	url   string
	token service.Secret
	http  *http.Client
}

// New returns a client of the control plane at url, such as http://localhost:18002.
func New(url string, token service.Secret) *Client {
	return &Client{strings.TrimRight(url, "/"), token, service.HTTPClient(timeout)}
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
	body, err := json.Marshal(struct {
		Model     string `json:"model"`
		Version   string `json:"version"`
		FlowRunID string `json:"flow_run_id,omitempty"`
	}{model, version, flowRunID})
	if err != nil {
		return out, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/versions", bytes.NewReader(body))
	if err != nil {
		return out, fmt.Errorf("control plane: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	resp, err := c.http.Do(req)
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
