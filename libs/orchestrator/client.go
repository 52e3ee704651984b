package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// DefaultTimeout limits a call whose context has no deadline.
	DefaultTimeout = 15 * time.Second
	// maxAnswer limits an answer: 200 flow runs, the largest page, with
	// parameters of 64 KiB each.
	maxAnswer = 16 << 20
	// maxErrorBody limits the part of a refusal that is kept.
	maxErrorBody = 64 << 10
)

// Client calls one orchestrator. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
	key  string // sent as a bearer; empty: none
}

// Option changes a default of [New].
type Option func(*Client)

// Key is sent as a bearer with each request, as the official client does with
// PREFECT_API_KEY. Empty: none is sent.
func Key(secret string) Option { return func(c *Client) { c.key = secret } }

// New returns a client of the API at apiURL, the address that ends in "/api".
// A nil hc means one that follows no redirects.
func New(apiURL string, hc *http.Client, o ...Option) *Client {
	if hc == nil {
		hc = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	c := &Client{base: strings.TrimRight(apiURL, "/"), http: hc}
	for _, f := range o {
		f(c)
	}
	return c
}

// URL is the address of the API the client calls.
func (c *Client) URL() string { return c.base }

// Health checks that the orchestrator serves.
func (c *Client) Health(ctx context.Context) error {
	var ok bool
	if _, err := c.call(ctx, http.MethodGet, "/health", nil, &ok); err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: %s/health answers false", ErrUnreachable, c.base)
	}
	return nil
}

// Version is the version of the orchestrator's server, such as "3.4.0".
func (c *Client) Version(ctx context.Context) (string, error) {
	var v string
	_, err := c.call(ctx, http.MethodGet, "/admin/version", nil, &v)
	return v, err
}

// call sends in as JSON and decodes a 2xx answer into out; either may be nil.
// It returns the status of the answer, 0 if there was none.
func (c *Client) call(ctx context.Context, method, path string, in, out any) (int, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	var body io.Reader
	if in != nil {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // a page never shows it, and escaped parameters can be six times as long
		if err := e.Encode(in); err != nil {
			return 0, fmt.Errorf("orchestrator: encode %s %s: %w", method, path, err)
		}
		body = &b
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return 0, fmt.Errorf("orchestrator: %w", err)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, transportError(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.StatusCode, decodeError(method, path, resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return resp.StatusCode, transportError(err)
	}
	if len(b) > maxAnswer {
		return resp.StatusCode, fmt.Errorf("orchestrator: answer to %s %s is over %d bytes: request fewer with limit", method, path, maxAnswer)
	}
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return resp.StatusCode, nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return resp.StatusCode, fmt.Errorf("orchestrator: answer to %s %s%s %w: %s", method, c.base, path, ErrUnreadable, truncateText(err.Error()))
	}
	return resp.StatusCode, nil
}

func transportError(err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("orchestrator: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// pathSegment makes a name one element of a path.
func pathSegment(name string) string { return url.PathEscape(name) }
