package dashboard_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/recordstest"
)

// TestContractErrors covers the codes of "Errors and headers" and of the dashboard's rows in "Errors". A row is named
// by its status and code; the login errors are covered by TestContractPasswordSession and TestContractSSOErrors.
func TestContractErrors(t *testing.T) {
	t.Parallel()
	w := startForRows(t)
	viewer, admin := w.signIn(viewerPassword), w.signIn(adminPassword)
	stranger := provenCookie(w.signOn(map[string]any{"sub": "9", "org": "other"}))
	for name, row := range map[string]struct {
		who                person
		method, path, body string
		header             []string
	}{
		"400 bad_docs_path":            {who: viewer, path: "/api/docs/content?path=../go.mod"},
		"400 bad_proxy_path":           {who: viewer, path: "/api/proxy/tracker/a/..%252fb"},
		"401 unauthenticated":          {who: nobody, path: "/api/config"},
		"401 invalid_token":            {who: bearer("x"), path: "/api/config"},
		"401 provider_untrusted":       {who: bearer(w.issuer.AccessToken(map[string]any{"iss": "https://elsewhere.example"})), path: "/api/config"},
		"403 role_required":            {who: viewer, path: "/api/audit"},
		"403 no_role":                  {who: bearer(w.issuer.AccessToken(map[string]any{"org": "default", "groups": []string{"x"}})), path: "/api/config"},
		"403 operator_tenant_required": {who: stranger, path: "/api/proxy/tracker/health"},
		"404 not_found":                {who: viewer, path: "/api/nothing"},
		"404 unknown_service":          {who: viewer, path: "/api/proxy/nothing/x"},
		"404 model_not_found":          {who: viewer, path: "/api/v1/mlops/model/NOSUCH"},
		"404 job_not_found":            {who: viewer, path: "/api/v1/facility/job/nosuch"},
		"404 alert_not_found":          {who: viewer, method: "POST", path: "/api/v1/alerts/nosuch/ack"},
		"405 method_not_allowed":       {who: viewer, method: "PATCH", path: "/api/config"},
		"412 config_changed":           {who: admin, method: "PUT", path: "/api/config", body: `{"scheduler_time": "1"}`, header: []string{"If-Match", `"old"`}},
		"413 body_too_large":           {who: admin, method: "PUT", path: "/api/config", body: `{"scheduler_time": "` + strings.Repeat("x", 256<<10) + `"}`},
		"415 unsupported_media_type":   {who: admin, method: "PUT", path: "/api/config", body: `{}`, header: []string{"Content-Type", "text/plain"}},
		"421 host_not_allowed":         {who: nobody, path: "/api/health", header: []string{"Host", "evil.example"}},
		"422 validation_failed":        {who: viewer, path: "/api/v1/mlops/model/JPCP/series?metric=nothing"},
		"422 empty_comment":            {who: viewer, method: "POST", path: "/api/v1/collab/model/JPCP/comments", body: `{"body": "<script></script>"}`},
		"503 service_not_configured":   {who: viewer, path: "/api/proxy/orchestrator/x"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			if row.method == "" {
				row.method = "GET"
			}
			a := w.call(row.who, row.method, row.path, row.body, row.header...)
			status, code, _ := strings.Cut(name, " ")
			w.checkProblem(a, status, code)
			if status == "401" && !strings.HasPrefix(a.header.Get("WWW-Authenticate"), `Bearer realm="dashboard"`) {
				t.Errorf("got WWW-Authenticate %q, want one for the dashboard", a.header.Get("WWW-Authenticate"))
			}
		})
	}
	t.Run("409 alert_resolved", func(t *testing.T) {
		w := w.on(t)
		w.want(200, viewer, "GET", "/api/v1/alerts", "")
		w.records.SetAlerts("default")
		testenv.Eventually(t, 20*time.Second, func() error { // answers of the control plane are shared for 2 s
			a := w.call(viewer, "POST", "/api/v1/alerts/budget:spent/ack", "")
			if a.status == 200 {
				return errShared
			}
			w.checkProblem(a, "409", "alert_resolved")
			return nil
		})
	})
	t.Run("403 feature_off", func(t *testing.T) {
		w := w.on(t)
		for flag, path := range map[string]string{"copilotDrawer": "/api/v1/copilot/ask", "toolProxy": "/api/proxy-ticket"} {
			w.want(200, admin, "POST", "/api/v1/flags/"+flag, `{"enabled": false}`)
			body := map[string]string{"copilotDrawer": `{"question": "x"}`, "toolProxy": `{"service": "tracker"}`}[flag]
			w.refused(403, "feature_off", admin, "POST", path, body) // as admin, too
			w.want(200, admin, "DELETE", "/api/v1/flags/"+flag, "")
		}
	})
	t.Run("502 upstream_unavailable", func(t *testing.T) {
		w := w.on(t)
		w.services.Tracker.Break()
		defer w.services.Tracker.Resume()
		w.refused(502, "upstream_unavailable", viewer, "GET", "/api/proxy/tracker/health", "")
	})
	for name, status := range map[string]int{"401": 401, "407": 407, "a third party's 403": 403} {
		t.Run("502 upstream_credentials for "+name, func(t *testing.T) {
			w := w.on(t)
			w.services.Tracker.Answer("/guarded", status, `{}`)
			a := w.refused(502, "upstream_credentials", viewer, "GET", "/api/proxy/tracker/guarded", "")
			a.hasHeader("X-Upstream-Status", name[max(0, len(name)-3):])
			if !strings.Contains(string(a.body), "tracker_url") {
				t.Errorf("got %s, want the setting to mend", a.body)
			}
		})
	}
	t.Run("403 of the control plane passes", func(t *testing.T) {
		w := w.on(t)
		w.services.ControlPlane.Answer("/guarded", 403, `{"code":"insufficient_scope"}`)
		if a := w.call(viewer, "GET", "/api/proxy/control_plane/guarded", ""); a.status != 403 || a.code() != "insufficient_scope" {
			t.Errorf("got %d %s, want the control plane's own 403", a.status, a.body)
		}
	})
	t.Run("502 upstream_redirect", func(t *testing.T) {
		w := w.on(t)
		w.services.Tracker.Handle("/away", func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "http://evil.example/", http.StatusFound)
		})
		w.refused(502, "upstream_redirect", viewer, "GET", "/api/proxy/tracker/away", "")
	})
	t.Run("504 upstream_timeout", func(t *testing.T) {
		w := w.on(t)
		w.records.Set(recordstest.Hanging)
		defer w.records.Set(recordstest.Well)
		w.refused(504, "upstream_timeout", admin, "GET", "/api/audit", "")
	})
	t.Run("503 trust_file_invalid", func(t *testing.T) {
		w := w.on(t)
		cookie := person{"Cookie", w.signOn(nil)}
		file := w.trustFile
		good, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(file+".new", append(good, "surprise: 1\n"...), 0o600), os.Rename(file+".new", file)); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, 20*time.Second, func() error {
			if a := w.call(nobody, "GET", "/api/auth/sso/campus/login", ""); a.status != 503 || a.code() != "trust_file_invalid" {
				return errShared
			}
			return nil
		})
		w.refused(401, "provider_untrusted", cookie, "GET", "/api/auth/me", "")
		if got := len(w.want(200, nobody, "GET", "/api/auth/sso/providers", "").at("providers").([]any)); got != 0 {
			t.Errorf("got %d providers of a broken trust file, want none", got)
		}
		line := regexp.MustCompile(`trust.yaml:\d+: surprise`)
		testenv.Eventually(t, 20*time.Second, func() error {
			if ready := w.call(nobody, "GET", "/readyz", ""); !line.Match(ready.body) {
				return fmt.Errorf("got %s, want the line named", ready.body)
			}
			return nil
		})
	})
}

// errShared is why a test asks again.
var errShared = errors.New("the answer is still that of before")

// checkProblem reads a problem document.
func (w *world) checkProblem(a answer, status, code string) {
	w.t.Helper()
	a.hasHeader("Content-Type", "application/problem+json")
	a.hasMembers("", "type title status detail instance code request_id")
	wantValue("code", code)(w, a)
	if got := strconv.Itoa(a.status); got != status || a.at("status") != float64(a.status) {
		w.t.Errorf("%s: got status %s and member %v, want %s", a.request, got, a.at("status"), status)
	}
}

// TestContractStreamUnavailable: without a broker the stream is refused and the views still work.
func TestContractStreamUnavailable(t *testing.T) {
	t.Parallel()
	w := startWorld(t, "EVENT_PUBLISHER=log")
	viewer := w.signIn(viewerPassword)
	a := w.refused(503, "stream_unavailable", viewer, "GET", "/api/v1/stream", "")
	if a.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After")
	}
	w.want(200, viewer, "GET", "/api/v1/flags", "")
}
