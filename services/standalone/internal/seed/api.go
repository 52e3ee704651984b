package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/problem"
)

// clients gives both services' clients, each under its credential.
func clients(o Options) (*controlplane.Client, *inference.Client, error) {
	bearer := func(token string) func(context.Context, *http.Request) error {
		return func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		}
	}
	cp, err := controlplane.NewClient(o.ControlPlane, controlplane.WithHTTPClient(o.HTTP), controlplane.WithRequestEditorFn(bearer(o.ControlPlaneToken)))
	if err != nil {
		return nil, nil, fmt.Errorf("client of the control plane: %w", err)
	}
	inf, err := inference.NewClient(o.Serving, inference.WithHTTPClient(o.HTTP), inference.WithRequestEditorFn(bearer(o.ServingToken)))
	if err != nil {
		return nil, nil, fmt.Errorf("client of inference: %w", err)
	}
	return cp, inf, nil
}

// errUnreadable means that a service answered, but not with what it declares; asking again changes nothing.
var errUnreadable = errors.New("the answer cannot be read")

// answer decodes what a client's call gave; other answers than 2xx are *problem.Error. It takes the
// call's answer undecoded, since the clients' own decoding drops Retry-After.
func answer[T any](resp *http.Response, err error) (out T, _ error) {
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return out, problem.Decode(resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return out, fmt.Errorf("read the answer of %s: %w", resp.Request.URL.Path, err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, fmt.Errorf("%w: %s: %w", errUnreadable, resp.Request.URL.Path, err)
	}
	return out, nil
}
