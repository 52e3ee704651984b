//go:build e2e

package loop

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// post is one webhook as its receiver got it.
type post struct {
	header http.Header
	body   []byte
}

// postbox receives webhooks while it is open, and refuses them otherwise.
type postbox struct {
	mu      sync.Mutex // guards the rest
	open    bool
	got     []post
	refused int
}

func (p *postbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open {
		p.refused++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	p.got = append(p.got, post{r.Header, body})
}

func (p *postbox) state() (got []post, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]post(nil), p.got...), p.refused
}

// An approval that was requested before the whole platform is killed reaches a webhook once after it, signed; so does the
// decision. The inbox shows the request until it is decided.
func TestApprovalReachesAWebhookThroughAKill(t *testing.T) {
	box := &postbox{}
	srv := httptest.NewServer(box)
	t.Cleanup(srv.Close)
	d := harness.StartDashboard(t, "PLATFORM_SEED=false", "DASHBOARD_NOTIFY_ALLOW="+srv.Listener.Addr().String())
	admin := d.Login(t, "admin")
	made := harness.Want(t, 201, "POST", d.URL+"/api/v1/notifications/channels", admin, map[string]any{
		"name": "hook", "kind": "webhook", "url": srv.URL, "events": []string{"approval.requested", "approval.decided"},
	}).JSON(t)
	secret, _ := made["secret"].(string)
	id := fileNotice(t, d.Platform, "JPCP", "notify")
	harness.Eventually(t, 30*time.Second, func() error {
		if _, refused := box.state(); refused == 0 {
			return errors.New("no attempt yet")
		}
		return nil
	})
	d.Kill()
	box.mu.Lock()
	box.open = true
	box.mu.Unlock()
	d.Start(t, time.Minute)
	await := func(n int) []post {
		t.Helper()
		var got []post
		harness.Eventually(t, time.Minute, func() error {
			if got, _ = box.state(); len(got) != n {
				return fmt.Errorf("got %d posts, want %d", len(got), n)
			}
			return nil
		})
		return got
	}
	await(1)
	inbox := func() map[string]any {
		t.Helper()
		items, _ := harness.Want(t, 200, "GET", d.URL+"/api/v1/inbox", admin, nil).JSON(t)["items"].([]any)
		if len(items) != 1 {
			t.Fatalf("got %v, want one notice", items)
		}
		return items[0].(map[string]any)
	}
	if n := inbox(); n["unread"] != true || n["path"] != "/approvals?id="+id {
		t.Errorf("got %v, want an unread notice of the record", n)
	}
	harness.Want(t, 200, "POST", d.Env["CONTROL_PLANE_URL"]+"/reject/JPCP", d.Secret(t, "operator_token"), map[string]any{"reason": "not now"})
	got := await(2)
	for n, want := range []string{"approval.requested", "approval.decided"} {
		var m struct {
			Type string
			Data struct{ Object, Title string }
		}
		if err := json.Unmarshal(got[n].body, &m); err != nil || m.Type != want || m.Data.Object != id || !strings.HasSuffix(m.Data.Title, "the training of JPCP") && n == 0 {
			t.Errorf("got %s, %v; want %s of %s", got[n].body, err, want, id)
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", got[n].header.Get("webhook-id"), got[n].header.Get("webhook-timestamp"), got[n].body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got[n].header.Get("webhook-signature") != want {
			t.Errorf("got the signature %q, want %q", got[n].header.Get("webhook-signature"), want)
		}
	}
	if n := inbox(); n["outcome"] != "rejected" || n["unread"] != false {
		t.Errorf("got %v, want a notice that has ended", n)
	}
}
