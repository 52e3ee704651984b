package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// FuzzDelivery: a signed body causes at most a comparison of the model that it names; an unsigned one has no effect.
// Both get an answer of 2xx or 4xx.
func FuzzDelivery(f *testing.F) {
	for _, body := range []string{
		`{"entity":"model_version_alias","action":"created","data":{"name":"runtime","alias":"Production","version":"3"}}`,
		`{"data":{"name":"x"},"data":{"name":"y"}}`, `{"data":{"name":7}}`, `{"data":null}`, `null`, `[]`, `{}`, strings.Repeat("[", 5000), "", "\x00",
	} {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	const delivery, seconds = "d1", "1700000000"
	f.Fuzz(func(t *testing.T, body []byte, signed bool) {
		changed := make(chan string, 1)
		h := New("secret", changed)
		h.now = func() time.Time { return time.Unix(1700000000, 0) }
		mac := hmac.New(sha256.New, []byte("secret"))
		mac.Write([]byte(delivery + "." + seconds + "."))
		if signed {
			mac.Write(body)
		}
		req := httptest.NewRequest(http.MethodPost, "/webhooks/tracker", strings.NewReader(string(body)))
		req.Header.Set(headerDelivery, delivery)
		req.Header.Set(headerTimestamp, seconds)
		req.Header.Set(headerSignature, signatureVersion+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		rec := httptest.NewRecorder()
		hostiletest.CheckAllocation(t, uint64(1<<20+128*len(body)), func() {
			err := h.Tracker(echo.New().NewContext(req, rec))
			status := rec.Code
			var fault *problem.Error
			if errors.As(err, &fault) {
				status = fault.Kind.Status
			} else if err != nil {
				t.Errorf("got %v; want a problem", err)
			}
			if status < 200 || status >= 500 || status >= 300 && status < 400 {
				t.Errorf("got status %d; want 2xx or 4xx", status)
			}
			if accepted := status == http.StatusAccepted; accepted != (len(changed) == 1) || accepted && !signed && len(body) > 0 {
				t.Errorf("got status %d with %d models to compare, signed: %v; want one if it was accepted, and signed", status, len(changed), signed)
			}
		})
	})
}
