package inference_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
)

const hookSecret = "secret-of-the-tracker"

// signed are the headers of a delivery as MLflow makes them (mlflow.webhooks.delivery).
func signed(secret, body string, at time.Time) []string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "delivery-1.%s.%s", stamp, body)
	return []string{
		"X-MLflow-Delivery-Id", "delivery-1", "X-MLflow-Timestamp", stamp,
		"X-MLflow-Signature", "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	}
}

const aliasMoved = `{"entity": "model_version_alias", "action": "created", "timestamp": "2026-01-02T03:04:05Z", "data": {"name": "jpcp", "alias": "Production", "version": "2"}}`

// With polls an hour apart, only the webhook can make the service follow.
func TestTrackerWebhookFollowsTheAlias(t *testing.T) {
	t.Parallel()
	reg := splitRegistry(t)
	i := start(t, reg, func(c *inference.Config) { c.TrackerWebhookSecret, c.ReloadPollSeconds = hookSecret, 3600 })
	if got, want := i.aliasFor(row), "Production 1"; got != want {
		t.Fatalf("before: %s, want %s", got, want)
	}
	reg.Alias("jpcp", "Production", "2")
	s, _, body := i.Do(http.MethodPost, "/webhooks/tracker", aliasMoved, signed(hookSecret, aliasMoved, time.Now())...)
	if s != http.StatusAccepted || strings.TrimSpace(body) != `{"model":"JPCP"}` {
		t.Errorf("%d %s, want 202 and the model", s, body)
	}
	i.becomes("jpcp", "2")
}

func TestTrackerWebhookNeedsItsProof(t *testing.T) {
	t.Parallel()
	i := start(t, splitRegistry(t), func(c *inference.Config) { c.TrackerWebhookSecret = hookSecret })
	now := time.Now()
	replaced := func(header []string, name, value string) []string {
		out := append([]string(nil), header...)
		for k := 0; k < len(out); k += 2 {
			if out[k] == name {
				out[k+1] = value
			}
		}
		return out
	}
	good := signed(hookSecret, aliasMoved, now)
	for _, c := range []struct {
		name, body string
		header     []string
		status     int
		code       string
	}{
		{"no proof", aliasMoved, nil, 401, "invalid_webhook_proof"},
		{"another secret", aliasMoved, signed("another", aliasMoved, now), 401, "invalid_webhook_proof"},
		{"another body", aliasMoved + " ", good, 401, "invalid_webhook_proof"},
		{"another delivery", aliasMoved, replaced(good, "X-MLflow-Delivery-Id", "delivery-2"), 401, "invalid_webhook_proof"},
		{"an old one", aliasMoved, signed(hookSecret, aliasMoved, now.Add(-10*time.Minute)), 401, "invalid_webhook_proof"},
		{"one of the future", aliasMoved, signed(hookSecret, aliasMoved, now.Add(10*time.Minute)), 401, "invalid_webhook_proof"},
		{"no version of the scheme", aliasMoved, replaced(good, "X-MLflow-Signature", strings.TrimPrefix(good[5], "v1,")), 401, "invalid_webhook_proof"},
		{"no base64", aliasMoved, replaced(good, "X-MLflow-Signature", "v1,%%%"), 401, "invalid_webhook_proof"},
		{"no timestamp", aliasMoved, replaced(good, "X-MLflow-Timestamp", "now"), 401, "invalid_webhook_proof"},
		{"no object", `[1]`, signed(hookSecret, `[1]`, now), 400, "bad_request"},
		{"null", `null`, signed(hookSecret, `null`, now), 400, "bad_request"},
		{"a name that is no text", `{"data": {"name": 1}}`, signed(hookSecret, `{"data": {"name": 1}}`, now), 400, "bad_request"},
		{"too large", strings.Repeat(" ", 2<<20), nil, 413, "body_too_large"},
	} {
		s, _, body := i.Do(http.MethodPost, "/webhooks/tracker", c.body, c.header...)
		if p := inferencetest.ProblemOf(t, s, body); s != c.status || p.Code != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.name, s, body, c.status, c.code)
		}
	}
	const other = `{"entity": "prompt", "action": "created", "data": {}}`
	if s, _, body := i.Do(http.MethodPost, "/webhooks/tracker", other, signed(hookSecret, other, now)...); s != http.StatusOK || !strings.Contains(body, `"skipped":true`) {
		t.Errorf("a delivery of no model: %d %s, want 200 and skipped", s, body)
	}
}

func TestTrackerWebhookWithoutASecretIsOff(t *testing.T) {
	t.Parallel()
	i := start(t, splitRegistry(t))
	s, _, body := i.Do(http.MethodPost, "/webhooks/tracker", aliasMoved, signed("", aliasMoved, time.Now())...)
	if p := inferencetest.ProblemOf(t, s, body); s != http.StatusServiceUnavailable || p.Code != "webhook_secret_missing" {
		t.Errorf("%d %s, want 503 webhook_secret_missing", s, body)
	}
}
