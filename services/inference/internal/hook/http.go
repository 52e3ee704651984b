// Package hook takes the tracker's webhooks: a moved alias is then followed at once instead of with the next poll.
package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
)

// Headers of a delivery.
const (
	headerSignature = "X-MLflow-Signature"
	headerDelivery  = "X-MLflow-Delivery-Id"
	headerTimestamp = "X-MLflow-Timestamp"
)

// tolerance is how far a delivery's clock may be off, and for how long a recorded one could be sent again. A repeat does
// no more than compare the model's aliases once more.
const tolerance = 300 * time.Second

// signatureVersion begins a signature.
const signatureVersion = "v1,"

// Handlers are the routes that others' servers call.
type Handlers struct {
	secret  service.Secret
	changed chan<- string
	now     func() time.Time
}

// New returns the handlers. Names of models to compare go to changed, which may be full. An empty secret refuses all.
func New(secret service.Secret, changed chan<- string) *Handlers {
	return &Handlers{secret, changed, time.Now}
}

// Tracker is POST /webhooks/tracker.
func (h *Handlers) Tracker(c echo.Context) error {
	if h.secret == "" {
		return fault.WebhookSecretMissing.New("TRACKER_WEBHOOK_SECRET is not set, so that no delivery can be proved; aliases are followed by poll.")
	}
	header := c.Request().Header
	if !h.isRecent(header) { // before the body, which is not authenticated yet
		return invalidProof()
	}
	body, err := service.ReadBody(c)
	if err != nil {
		return err
	}
	if !h.isSigned(header, body) {
		return invalidProof()
	}
	var delivery struct {
		Entity string `json:"entity"`
		Data   struct {
			Name string `json:"name"`
		} `json:"data"`
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil || object == nil || json.Unmarshal(body, &delivery) != nil {
		return problem.BadRequest.New("The delivery is no JSON object of the tracker's webhooks.")
	}
	if delivery.Data.Name == "" {
		return c.JSON(http.StatusOK, api.TrackerDelivery{Skipped: true, Reason: "names no model"})
	}
	out := api.TrackerDelivery{Model: catalog.UpperName(delivery.Data.Name)}
	select {
	case h.changed <- delivery.Data.Name:
	default: // many wait; the next poll compares all
		out.Skipped, out.Reason = true, "many models wait to be compared; the next poll compares all"
	}
	return c.JSON(http.StatusAccepted, out)
}

func invalidProof() error {
	return fault.InvalidWebhookProof.New("The delivery is not signed with TRACKER_WEBHOOK_SECRET, or its timestamp is more than 300 s off.")
}

// isRecent reports whether the headers that a proof needs are there, with a timestamp of now.
func (h *Handlers) isRecent(header http.Header) bool {
	seconds, err := strconv.ParseInt(header.Get(headerTimestamp), 10, 64)
	if err != nil || header.Get(headerDelivery) == "" || header.Get(headerSignature) == "" {
		return false
	}
	now := h.now()
	at := time.Unix(seconds, 0)
	return !at.Before(now.Add(-tolerance)) && !at.After(now.Add(tolerance))
}

func (h *Handlers) isSigned(header http.Header, body []byte) bool {
	mac := hmac.New(sha256.New, []byte(h.secret.Reveal()))
	mac.Write([]byte(header.Get(headerDelivery) + "." + header.Get(headerTimestamp) + "."))
	mac.Write(body)
	want := mac.Sum(nil)
	encoded, ok := strings.CutPrefix(header.Get(headerSignature), signatureVersion)
	got, err := base64.StdEncoding.DecodeString(encoded)
	return ok && err == nil && hmac.Equal(got, want)
}
