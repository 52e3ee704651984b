package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/config"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// Do sends a request of a generated client as mlp sends its own: signed, a mutation under an idempotency key
// and repeated once after a lost connection. Whatever is not a usable answer comes back as a fault.
func (s *remote) Do(req *http.Request) (*http.Response, error) {
	mutates := req.Method != http.MethodGet
	if mutates && req.Header.Get("Idempotency-Key") == "" {
		req.Header.Set("Idempotency-Key", uuid.Must(uuid.NewV7()).String())
	}
	resp, data, err := s.send(req)
	if mutates && lostConnection(err) && req.Context().Err() == nil {
		again := req.Clone(req.Context())
		if req.GetBody != nil {
			body, bodyErr := req.GetBody()
			if bodyErr != nil {
				return nil, bodyErr
			}
			again.Body = body
		}
		resp, data, err = s.send(again)
	}
	if err != nil {
		return nil, err
	}
	if req.Header.Get("Accept") == "application/json" && len(data) > 0 && !json.Valid(data) {
		return nil, s.notJSON(resp)
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// decode reads the answer of a generated client's call.
func decode[T any](resp *http.Response, err error) (T, error) {
	out, err := wire.Decode[T](resp, err)
	if errors.Is(err, wire.ErrUnreadable) {
		return out, fault.New("not_json", "%s answered with something that is not the expected JSON", resp.Request.URL.Host).
			WithHint("is that the right address? See: mlp config show")
	}
	return out, err
}

// discard reads an answer of which only the success matters.
func discard(resp *http.Response, err error) error {
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func (e *Env) dashboard(r *config.Resolved) *remote {
	s := e.remote(r, "dashboard", "dashboard", "dashboard_token")
	if strings.HasPrefix(e.command, "auth ") {
		s.changes = nil // the dashboard records sign-ins and sign-outs: the session is no credential of the ledger
	}
	if session, place := r.Session(); session != nil {
		s.renew = e.renewal(session, place, s.token)
	}
	return s
}

// controlPlaneClient, servingClient and dashboardClient are the generated clients of the configured services.
func (e *Env) controlPlaneClient() (*controlplane.Client, error) {
	r, err := e.Config()
	if err != nil {
		return nil, err
	}
	s := e.controlPlane(r)
	return controlplane.NewClient(s.url, wire.WithHTTPClient(s))
}

func (e *Env) servingClient() (*inference.Client, error) {
	r, err := e.Config()
	if err != nil {
		return nil, err
	}
	s := e.serving(r)
	return inference.NewClient(s.url, wire.WithHTTPClient(s))
}

func (e *Env) dashboardClient() (*dashboard.Client, error) {
	r, err := e.Config()
	if err != nil {
		return nil, err
	}
	s := e.dashboard(r)
	return dashboard.NewClient(s.url, wire.WithHTTPClient(s))
}

// pageSize is how many items one request of a list asks for.
const pageSize = 500

// readItems reads the pages of a list until limit items are there; 0 is all. more reports that the list continues.
func readItems[T any](limit int, page func(limit *int, cursor *string) ([]T, *string, error)) (items []T, more bool, err error) {
	items = []T{}
	var cursor *string
	for {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(items))
		}
		got, next, err := page(&size, cursor)
		if err != nil {
			return nil, false, err
		}
		items = append(items, got...)
		if next == nil || *next == "" {
			return items, false, nil
		}
		if limit > 0 && len(items) >= limit {
			return items, true, nil
		}
		cursor = next
	}
}

// decodeGuarded reads the answer to a change that may have to wait for another person: the change then, else the
// setting in force.
func decodeGuarded[T any](resp *http.Response, err error) (set T, waits *controlplane.GuardedChange, _ error) {
	if err == nil && resp.StatusCode == http.StatusAccepted {
		change, err := decode[controlplane.GuardedChange](resp, nil)
		return set, &change, err
	}
	set, err = decode[T](resp, err)
	return set, nil, err
}

// changeWaits reports a change that is not in force yet.
func (e *Env) changeWaits(c *controlplane.GuardedChange) error {
	return e.done(map[string]any{"state": c.State, "change_id": c.Id, "kind": c.Kind, "target": c.Target, "expires_at": c.ExpiresAt},
		"not in force yet: the change of %s waits for another person's approval (change %s)", c.Target, c.Id)
}
