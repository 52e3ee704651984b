// Package webhook takes the push webhooks of both forges: it bounds the body,
// checks the proof that the forge sent it, reads the forge's payload and hands
// the push on.
//
// Whoever sends is a stranger until the proof holds. So a refusal costs little:
// what the headers alone decide is decided before the body is read, bodies are
// read by few requests at a time, and refusals are counted but not written to
// the ledger, which a stranger could fill.
package webhook

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/api"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/push"
)

const (
	// maxBody bounds a payload, in bytes.
	maxBody = 5 << 20
	// readers is how many bodies of each forge are read and checked at once, so that
	// strangers can take 2 × readers × maxBody of memory at most, and that those
	// who pose as one forge do not keep the other waiting.
	readers = 8
	// readTimeout bounds the arrival of a body: a forge gives up after 10 s.
	readTimeout = 10 * time.Second
	// waitTimeout is how long a delivery waits for its turn.
	waitTimeout = 2 * time.Second
)

// Names of the forges, as metrics have them.
const (
	forgeA = "forge-a"
	forgeB = "forge-b"
)

// API serves the webhooks.
type API struct {
	pushes *push.Service
	secret service.Secret
	key    []byte // of signed deliveries of forge A; nil: they prove themselves by the token
	count  func(forge, outcome string)
	now    func() time.Time

	turnsA, turnsB chan struct{}
}

// New serves nobody while secret is empty. count is told of each delivery: its
// outcome is accepted, duplicate, skipped or the code of the error.
func New(pushes *push.Service, secret service.Secret, key []byte, count func(forge, outcome string), now func() time.Time) *API {
	return &API{
		pushes: pushes, secret: secret, key: key, count: count, now: now,
		turnsA: make(chan struct{}, readers), turnsB: make(chan struct{}, readers),
	}
}

// forge is what differs between the two.
type forge struct {
	name string
	// offers says whether the headers alone leave a proof possible; proves
	// decides, once the body is there.
	offers func(h http.Header) bool
	proves func(h http.Header, body []byte) bool
	parse  func(h http.Header, p payload) (out push.Push, skip string, err error)
	want   string // of a proof, for the one who lacks it
	turns  chan struct{}
}

// ForgeA serves POST /webhooks/modelrepo/forge-a.
func (a *API) ForgeA(c echo.Context) error {
	f := forge{name: forgeA, parse: parseA, turns: a.turnsA}
	if a.key != nil {
		f.offers = func(h http.Header) bool { return signedProof(h, a.key, nil, a.now()) }
		f.proves = func(h http.Header, body []byte) bool { return signedProof(h, a.key, body, a.now()) }
		f.want = "Deliveries must be signed: webhook-id, webhook-timestamp (at most 300 s off) and webhook-signature under the signing token."
	} else {
		f.offers = func(h http.Header) bool { return tokenProof(h, a.secret.Reveal()) }
		f.proves = func(h http.Header, _ []byte) bool { return f.offers(h) }
		f.want = "X-Forge-A-Token or X-Gitlab-Token must hold the webhook secret."
	}
	return a.serve(c, f)
}

// ForgeB serves POST /webhooks/modelrepo/forge-b.
func (a *API) ForgeB(c echo.Context) error {
	return a.serve(c, forge{
		name: forgeB, parse: parseB, turns: a.turnsB,
		offers: func(h http.Header) bool { return len(signatures(h)) > 0 },
		proves: func(h http.Header, body []byte) bool { return hmacProof(h, a.secret.Reveal(), body) },
		want:   "X-Forge-B-Signature-256 or X-Hub-Signature-256 must hold sha256= and the hexadecimal HMAC-SHA256 of the body under the webhook secret.",
	})
}

func (a *API) serve(c echo.Context, f forge) error {
	out, err := a.receive(c, f)
	switch {
	case err != nil:
		a.count(f.name, problem.From(err).Kind.Code)
		return err
	case out.Skipped != "":
		a.count(f.name, "skipped")
	case out.Duplicate:
		a.count(f.name, "duplicate")
	default:
		a.count(f.name, "accepted")
	}
	return c.JSON(http.StatusOK, document(out))
}

// receive checks in this order: size, configuration, proof, form.
func (a *API) receive(c echo.Context, f forge) (push.Outcome, error) {
	r := c.Request()
	if r.ContentLength > maxBody {
		return push.Outcome{}, tooLarge(c)
	}
	refused := fault.InvalidWebhookProof.New(f.want).WithHeader("WWW-Authenticate", "Webhook")
	if r.ContentLength >= 0 { // else only reading tells whether it is too large
		if err := a.configured(); err != nil {
			return push.Outcome{}, err
		}
		if !f.offers(r.Header) {
			return push.Outcome{}, refused
		}
	}
	body, err := a.take(c, f, refused)
	if err != nil {
		return push.Outcome{}, err
	}
	fields, err := object(body)
	if err != nil {
		return push.Outcome{}, err
	}
	p, skip, err := f.parse(r.Header, fields)
	if err != nil || skip != "" {
		return push.Outcome{Skipped: skip}, err
	}
	return a.pushes.Record(r.Context(), p)
}

func (a *API) configured() error {
	if a.secret != "" {
		return nil
	}
	return fault.WebhookSecretMissing.New("Webhooks are not served: MODELREPO_WEBHOOK_SECRET is not set.")
}

// take reads the body and checks the proof, a bounded number at once.
func (a *API) take(c echo.Context, f forge, refused error) ([]byte, error) {
	ctx := c.Request().Context()
	wait := time.NewTimer(waitTimeout)
	defer wait.Stop()
	select {
	case f.turns <- struct{}{}:
		defer func() { <-f.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-wait.C:
		return nil, fault.WebhooksBusy.New("Too many deliveries arrive at once; send this one again.").After(time.Second)
	}
	body, err := read(c)
	if err != nil {
		return nil, err
	}
	if err := a.configured(); err != nil {
		return nil, err
	}
	if !f.proves(c.Request().Header, body) {
		return nil, refused
	}
	return body, nil
}

func read(c echo.Context) ([]byte, error) {
	deadline := http.NewResponseController(c.Response())
	_ = deadline.SetReadDeadline(time.Now().Add(readTimeout)) // fails only on a connection that is gone
	body, err := io.ReadAll(io.LimitReader(c.Request().Body, maxBody+1))
	switch {
	case err == nil && len(body) > maxBody:
		return nil, tooLarge(c)
	case err == nil:
		_ = deadline.SetReadDeadline(time.Time{})
		return body, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, service.RequestTimeout.Errorf("The request body did not arrive within %s.", readTimeout).WithCause(err)
	}
	return nil, problem.BadRequest.New("The request body ended early.").WithCause(err)
}

func tooLarge(c echo.Context) error {
	c.Response().Header().Set("Connection", "close") // rather than read the rest
	return problem.BodyTooLarge.New(fmt.Sprintf("The request body is larger than %d bytes.", maxBody))
}

// document is the answer: what the push led to, or why nothing came of it.
func document(o push.Outcome) api.PushOutcome {
	if o.Skipped != "" {
		yes, reason := api.PushOutcomeSkipped(true), api.PushOutcomeReason(o.Skipped)
		out := api.PushOutcome{Skipped: &yes, Reason: &reason}
		if o.EventID != 0 {
			out.EventId = &o.EventID
		}
		return out
	}
	stale, triggered, approvals := o.MarkedStale, o.RetrainTriggered, o.ApprovalsCreated
	if stale == nil {
		stale = []string{}
	}
	if triggered == nil {
		triggered = []string{}
	}
	if approvals == nil {
		approvals = []uuid.UUID{}
	}
	return api.PushOutcome{
		EventId: &o.EventID, ModelsMarkedStale: &stale, RetrainTriggered: &triggered, ApprovalsCreated: &approvals,
		CiPipelineTriggered: &o.CITriggered, Duplicate: &o.Duplicate,
	}
}
