// Package assistant holds what the copilot and the assistant drawer share: calls to the cluster assistant with one of
// the dashboard's two keys, its frames, and messages that carry the page as untrusted data.
package assistant

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	wire "github.com/mlp-platform/platform/clients/go/assistant"
	bearer "github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/chattext"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// Key is one of the keys that the dashboard holds.
type Key string

// The keys, by the setting that holds them.
const (
	ReadOnly Key = "ASSISTANT_READONLY_KEY"
	Operator Key = "ASSISTANT_OPERATOR_KEY"
)

// ErrNoKey means that the setting of a key is empty. A call without a key is never made: an assistant that was
// started without keys would take its sender for an admin.
var ErrNoKey = errors.New("the key for the assistant is not set")

// Addresses know where services are.
type Addresses interface {
	// Address is the base URL; upstream.ErrNotConfigured without one. It answers from memory.
	Address(upstream.Service) (string, error)
}

// Config of New.
type Config struct {
	Addresses    Addresses
	ReadOnlyKey  service.Secret
	OperatorKey  service.Secret
	Delegator    *auth.Delegator   `part:"optional"` // nil: the assistant counts all people by the dashboard's keys
	RoundTripper http.RoundTripper `part:"optional"` // for tests; nil is the service's default
}

// Clients makes calls to the assistant.
type Clients struct {
	addresses Addresses
	keys      map[Key]service.Secret
	delegator *auth.Delegator
	http      *http.Client
}

// New returns clients that read the address at each call.
func New(cfg Config) (*Clients, error) {
	if err := service.RequireParts("assistant", cfg); err != nil {
		return nil, err
	}
	client := service.HTTPClient(0) // callers set deadlines
	if cfg.RoundTripper != nil {
		client.Transport = cfg.RoundTripper
	}
	return &Clients{
		addresses: cfg.Addresses, http: client, delegator: cfg.Delegator,
		keys: map[Key]service.Secret{ReadOnly: cfg.ReadOnlyKey, Operator: cfg.OperatorKey},
	}, nil
}

// OnBehalfOf is the header with a delegation naming the person that a call with one of the dashboard's keys is made
// for: the assistant applies its limits to that person, and the facts that it records name them. It grants nothing.
const OnBehalfOf = "X-PLATFORM-On-Behalf-Of"

// With returns a client that calls with the key for who.
func (c *Clients) With(key Key, who caller.Caller) (*wire.Client, error) {
	address, err := c.addresses.Address(upstream.Assistant)
	if err != nil {
		return nil, err
	}
	secret := c.keys[key].Reveal()
	if secret == "" {
		return nil, fmt.Errorf("%s: %w", key, ErrNoKey)
	}
	return wire.NewClient(address, wire.WithHTTPClient(c.http), wire.WithRequestEditorFn(bearer.Bearer(secret)), wire.WithRequestEditorFn(c.nameCaller(who)))
}

// nameCaller adds a new delegation to each request. A caller that no delegation can name is counted under the key.
func (c *Clients) nameCaller(who caller.Caller) wire.RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		if c.delegator == nil {
			return nil
		}
		if token, err := c.delegator.Mint("assistant", auth.Person{Name: who.Subject, Tenant: who.Tenant, Scopes: []string{}}); err == nil {
			r.Header.Set(OnBehalfOf, token)
		}
		return nil
	}
}

// Ask returns the body of a chat request. It never asks to skip approvals, and no word of the text decides: a person
// decides by the actions route, after the step-up and with the decision on record.
func Ask(text, user string) (wire.ChatRequest, error) {
	var content wire.ChatMessage_Content
	if err := content.FromChatMessageContent0(text); err != nil {
		return wire.ChatRequest{}, err
	}
	stream, decisions := true, false
	user = chattext.CutText(user, maxUser)
	return wire.ChatRequest{
		Messages: []wire.ChatMessage{{Role: "user", Content: content}}, Stream: &stream, User: &user, Decisions: &decisions,
	}, nil
}

// maxUser limits the user of a chat request, in characters.
const maxUser = 256

// ExplainCall returns the problem of a call that got no response.
func ExplainCall(err error) error {
	switch {
	case errors.Is(err, upstream.ErrNotConfigured):
		return fault.ServiceNotConfigured.New("The assistant has no address; set ASSISTANT_URL and restart the dashboard.").WithCause(err)
	case errors.Is(err, ErrNoKey):
		return fault.ServiceNotConfigured.New("The dashboard has no key for the assistant; set ASSISTANT_READONLY_KEY and ASSISTANT_OPERATOR_KEY and restart the dashboard.").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.UpstreamTimeout.New("The assistant did not answer in time; try again.").WithCause(err)
	}
	return fault.UpstreamUnavailable.New("The assistant cannot be reached; see whether it runs, then try again.").WithCause(err)
}

// ExplainRefusal returns the problem of a response outside 2xx, whose body it closes. The assistant's own message is
// passed on, except for a 401: the person is signed in, the dashboard's key was refused.
func ExplainRefusal(resp *http.Response, key Key) error {
	defer resp.Body.Close()
	told := problem.Decode(resp)
	switch status := told.Status(); {
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired:
		return fault.UpstreamCredentials.New("The assistant refuses the dashboard's key; correct "+string(key)+" and restart the dashboard.").
			WithHeader("X-Upstream-Status", fmt.Sprint(status)).WithCause(told)
	case status == http.StatusGatewayTimeout:
		return fault.UpstreamTimeout.New("The assistant ran out of time; try again.").WithCause(told)
	case status < 400, status >= 500 && status != http.StatusServiceUnavailable:
		return fault.UpstreamUnavailable.New("The assistant failed; its log has the cause under this request id.").
			WithHeader("X-Upstream-Status", fmt.Sprint(status)).WithCause(told)
	}
	passed := told.Kind.New(told.Detail).WithErrors(told.Errors...)
	if told.RetryAfter > 0 {
		passed = passed.After(told.RetryAfter)
	}
	return passed
}
