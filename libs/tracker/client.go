package tracker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// DefaultTimeout limits a call other than a transfer whose context has no deadline.
	DefaultTimeout = 15 * time.Second
	// Attempts limits the attempts of a read.
	Attempts = 3
	// maxAnswer limits an answer; the largest page requested here stays well below.
	maxAnswer = 32 << 20

	api           = "/api/2.0/mlflow/"
	artifactsPath = "/api/2.0/mlflow-artifacts/artifacts"
)

// Client calls one tracking server. It is safe for concurrent use.
type Client struct {
	base        string
	http        *http.Client
	transfer    *http.Client // http without its overall timeout
	token       string       // sent as a bearer; empty: none
	maxDownload int64
	backoff     time.Duration // before the second attempt
}

// Option changes a default of [New].
type Option func(*Client)

// MaxDownload limits, in bytes, what one [Client.DownloadArtifact] or
// [Client.DownloadModel] fetches; default 2 GiB.
func MaxDownload(n int64) Option { return func(c *Client) { c.maxDownload = n } }

// Token is sent as a bearer with each request, as the official client does with
// MLFLOW_TRACKING_TOKEN. Empty: none is sent.
func Token(secret string) Option { return func(c *Client) { c.token = secret } }

// New returns a client of the server at baseURL, such as http://localhost:15000;
// a user and password in it are sent as basic authentication. A nil hc means one
// that follows no redirects. The Timeout of hc does not limit transfers of
// artifacts, which end when no byte has arrived for [StallTimeout].
func New(baseURL string, hc *http.Client, o ...Option) *Client {
	if hc == nil {
		hc = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	transfer := *hc
	transfer.Timeout = 0
	c := &Client{
		base: strings.TrimRight(baseURL, "/"), http: hc, transfer: &transfer,
		maxDownload: 2 << 30, backoff: 100 * time.Millisecond,
	}
	for _, f := range o {
		f(c)
	}
	return c
}

// URL is the address of the server the client calls.
func (c *Client) URL() string { return c.base }

// Health checks that the server is up.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.raw(ctx, http.MethodGet, "/health", nil)
	return err
}

// get reads path, below the API's root, with the query q, into out.
func (c *Client) get(ctx context.Context, path string, q url.Values, out any) error {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	b, err := c.retried(ctx, http.MethodGet, api+path, nil)
	if err != nil {
		return err
	}
	return c.decode(api+path, b, out)
}

// search sends a read that the interface defines as POST.
func (c *Client) search(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("tracker: encode %s: %w", path, err)
	}
	b, err := c.retried(ctx, http.MethodPost, api+path, body)
	if err != nil {
		return err
	}
	return c.decode(api+path, b, out)
}

// write sends in and decodes the answer into out; either may be nil.
func (c *Client) write(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("tracker: encode %s: %w", path, err)
	}
	b, err := c.raw(ctx, method, api+path, body)
	if err != nil {
		return err
	}
	return c.decode(api+path, b, out)
}

func (c *Client) post(ctx context.Context, path string, in, out any) error {
	return c.write(ctx, http.MethodPost, path, in, out)
}

func (c *Client) decode(path string, b []byte, out any) error {
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		path, _, _ = strings.Cut(path, "?")
		return fmt.Errorf("tracker: the answer to %s %w: %.300v", path, ErrUnreadable, err)
	}
	return nil
}

func (c *Client) retried(ctx context.Context, method, path string, body []byte) (b []byte, err error) {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	for attempt := 1; ; attempt++ {
		b, err = c.raw(ctx, method, path, body)
		if err == nil || attempt == Attempts || !errors.Is(err, ErrUnavailable) {
			return b, err
		}
		if !pauseAbout(ctx, c.backoff<<(attempt-1)) {
			return nil, err
		}
	}
}

// pauseAbout waits between d/2 and d, at random so that replicas do not retry
// together. It returns false if ctx would end first.
func pauseAbout(ctx context.Context, d time.Duration) bool {
	d = d/2 + rand.N(d/2+1)
	if until, ok := ctx.Deadline(); ok && time.Until(until) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func withDefaultTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, DefaultTimeout)
}

// authorize adds the credential to a request to the server.
func (c *Client) authorize(req *http.Request) {
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
}

// raw makes one attempt and returns the whole answer.
func (c *Client) raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	bare, _, _ := strings.Cut(path, "?")
	op := method + " " + bare
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("tracker: %w", err)
	}
	c.authorize(req)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, transportError(op, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, decodeError(op, resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, transportError(op, err)
	}
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("tracker: %s: the answer is over %d bytes", op, maxAnswer)
	}
	return b, nil
}

// milli is a time in milliseconds since 1970; servers write it as a number or,
// as protobuf's JSON does, as a string. 0 is the zero time.
type milli struct{ time.Time }

func (m *milli) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("%s is no time in milliseconds", b)
	}
	if m.Time = (time.Time{}); n != 0 {
		m.Time = time.UnixMilli(n).UTC()
	}
	return nil
}

func (m milli) MarshalJSON() ([]byte, error) {
	if m.IsZero() {
		return []byte("0"), nil
	}
	return strconv.AppendInt(nil, m.UnixMilli(), 10), nil
}

// whole is an int64 written as a number or a string.
type whole int64

func (w *whole) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*w = whole(n)
	return err
}

// pair is a tag or parameter on the wire.
type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func toPairs(m map[string]string) []pair {
	out := make([]pair, 0, len(m))
	for k, v := range m {
		out = append(out, pair{k, v})
	}
	return out
}

func fromPairs(ps []pair) map[string]string {
	m := make(map[string]string, len(ps))
	for _, p := range ps {
		m[p.Key] = p.Value
	}
	return m
}
