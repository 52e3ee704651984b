package webhook

import (
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/push"
)

// ForgeA serves POST /webhooks/modelrepo/forge-a.
func (a *API) ForgeA(c echo.Context) error {
	f := forge{name: forgeA, parse: parseA, lane: a.laneA}
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
		name: forgeB, parse: parseB, lane: a.laneB,
		offers: func(h http.Header) bool { return len(offeredSignatures(h)) > 0 },
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
	return c.JSON(http.StatusOK, toPushOutcome(out))
}

// receive checks, in this order, declared size, configuration, proof and form.
func (a *API) receive(c echo.Context, f forge) (push.Outcome, error) {
	r := c.Request()
	if r.ContentLength > maxBody {
		return push.Outcome{}, tooLarge(c)
	}
	if a.secret == "" {
		closeUnread(c)
		return push.Outcome{}, fault.WebhookSecretMissing.New("Webhooks are not served: MODELREPO_WEBHOOK_SECRET is not set.")
	}
	refused := fault.InvalidWebhookProof.New(f.want).WithHeader("WWW-Authenticate", "Webhook")
	if !f.offers(r.Header) {
		closeUnread(c)
		return push.Outcome{}, refused
	}
	p, skip, err := a.take(c, f, refused)
	if err != nil || skip != "" {
		return push.Outcome{Skipped: skip}, err
	}
	return a.pushes.Record(r.Context(), p)
}

// take reads the body, checks its proof and parses its push.
func (a *API) take(c echo.Context, f forge, refused error) (push.Push, string, error) {
	ctx, r := c.Request().Context(), c.Request()
	body := intake{memory: f.lane.memory}
	defer body.release()
	if err := body.read(c); err != nil {
		return push.Push{}, "", err
	}
	wait := time.NewTimer(waitTimeout)
	defer wait.Stop()
	select {
	case f.lane.turns <- struct{}{}:
		defer func() { <-f.lane.turns }()
	case <-ctx.Done():
		return push.Push{}, "", ctx.Err()
	case <-wait.C:
		return push.Push{}, "", tooManyDeliveries()
	}
	if !f.proves(r.Header, body.bytes) {
		return push.Push{}, "", refused
	}
	fields, err := parsePayload(body.bytes)
	if err != nil {
		return push.Push{}, "", err
	}
	return f.parse(r.Header, fields)
}

func tooManyDeliveries() error {
	return fault.WebhooksBusy.New("Too many deliveries arrive at once; send this one again.").After(time.Second)
}

func tooLarge(c echo.Context) error {
	closeUnread(c)
	return problem.BodyTooLarge.New(fmt.Sprintf("The request body is larger than %d bytes.", maxBody))
}

// closeUnread sends the answer and ends the connection without the rest of the body; net/http would read it first, and
// wait for one that does not come.
func closeUnread(c echo.Context) {
	if c.Request().ContentLength != 0 {
		c.Response().Header().Set("Connection", "close")
	}
}

// toPushOutcome returns the answer: the effects of the push, or the reason why there are none.
func toPushOutcome(o push.Outcome) api.PushOutcome {
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
