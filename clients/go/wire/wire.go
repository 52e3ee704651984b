// Package wire decodes the responses of the generated clients and signs their requests.
package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/mlp-platform/platform/libs/problem"
)

// MaxBody limits one decoded body, in bytes.
const MaxBody = 16 << 20

// ErrUnreadable means that a service answered 2xx with a body that does not match its
// OpenAPI document, or is longer than [MaxBody]. Retrying does not help.
var ErrUnreadable = errors.New("the response cannot be read")

// Decode reads the response of a client call, such as
//
//	runs, err := wire.Decode[[]controlplane.Run](client.ListRuns(ctx, params))
//
// and closes its body. A status outside 2xx becomes a [*problem.Error], Retry-After
// included; err is returned as it is.
func Decode[T any](resp *http.Response, err error) (T, error) {
	var out T
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return out, problem.Decode(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	if err != nil {
		return out, fmt.Errorf("read the response of %s: %w", resp.Request.URL.Path, err)
	}
	if len(body) > MaxBody {
		return out, fmt.Errorf("%w: %s sent more than %d bytes", ErrUnreadable, resp.Request.URL.Path, MaxBody)
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("%w: %s: %w", ErrUnreadable, resp.Request.URL.Path, err)
	}
	return out, nil
}

// Bearer returns a request editor that adds the bearer credential; an empty token adds none.
func Bearer(token string) func(context.Context, *http.Request) error {
	return func(_ context.Context, req *http.Request) error {
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		return nil
	}
}
