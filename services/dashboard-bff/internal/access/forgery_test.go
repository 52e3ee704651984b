package access_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

func TestCookieWritesNeedAProofOfTheOwnPage(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, p := newReplica(f, accesstest.Options{Federation: &accesstest.Provider{}})
	cookie := signIn(t, r, f.Person(caller.Viewer))
	for _, c := range []struct {
		name    string
		headers [][2]string
		passes  bool
	}{
		{"nothing", nil, false},
		{"header", [][2]string{{"X-PLATFORM-CSRF", "1"}}, true},
		{"header in another case", [][2]string{{"x-platform-csrf", "1"}}, true},
		{"header with another value", [][2]string{{"X-PLATFORM-CSRF", "true"}}, false},
		{"header with 1 and more", [][2]string{{"X-PLATFORM-CSRF", "11"}}, false},
		{"header twice", [][2]string{{"X-PLATFORM-CSRF", "1"}, {"X-PLATFORM-CSRF", "1"}}, false},
		{"header although Origin is another's", [][2]string{{"X-PLATFORM-CSRF", "1"}, {"Origin", "https://evil.test"}}, true},
		{"same-origin", [][2]string{{"Sec-Fetch-Site", "same-origin"}}, true},
		{"same-site", [][2]string{{"Sec-Fetch-Site", "same-site"}}, false},
		{"cross-site", [][2]string{{"Sec-Fetch-Site", "cross-site"}}, false},
		{"none, typed into the address bar", [][2]string{{"Sec-Fetch-Site", "none"}}, false},
		{"same-origin twice", [][2]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "cross-site"}}, false},
		{"own origin", [][2]string{{"Origin", "https://dashboard.test"}}, true},
		{"own origin in another case", [][2]string{{"Origin", "HTTPS://Dashboard.Test"}}, true},
		{"own origin with its port", [][2]string{{"Origin", "https://dashboard.test:443"}}, true},
		{"own origin though cross-site is said", [][2]string{{"Origin", "https://dashboard.test"}, {"Sec-Fetch-Site", "cross-site"}}, true},
		{"other scheme", [][2]string{{"Origin", "http://dashboard.test"}}, false},
		{"other host", [][2]string{{"Origin", "https://dashboard.test.evil.test"}}, false},
		{"subdomain", [][2]string{{"Origin", "https://x.dashboard.test"}}, false},
		{"other port", [][2]string{{"Origin", "https://dashboard.test:8443"}}, false},
		{"user in the origin", [][2]string{{"Origin", "https://dashboard.test@evil.test"}}, false},
		{"path in the origin", [][2]string{{"Origin", "https://dashboard.test/x"}}, false},
		{"null", [][2]string{{"Origin", "null"}}, false},
		{"empty", [][2]string{{"Origin", ""}}, false},
		{"Referer is no proof", [][2]string{{"Referer", "https://dashboard.test/"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
				before := p.reached
				a := r.Do(method, "/test/write", nil, cookie, func(q *http.Request) {
					for _, h := range c.headers {
						q.Header.Add(h[0], h[1])
					}
				})
				switch {
				case c.passes && (a.Code != 200 || p.reached != before+1):
					t.Errorf("%s: %d %s; want 200", method, a.Code, a.Body)
				case !c.passes && (a.Code != 403 || a.Text("code") != "csrf_refused" || p.reached != before):
					t.Errorf("%s: %d %s, handler reached: %v; want 403 csrf_refused and no effect", method, a.Code, a.Body, p.reached != before)
				}
			}
		})
	}
}

func TestBearersAndReadsNeedNoProof(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{Federation: &accesstest.Provider{}})
	evil := accesstest.Header("Origin", "https://evil.test")
	r.Do("POST", "/test/write", nil, accesstest.Bearer(r.SignIn(caller.Viewer)), evil).Want(200, "")
	r.Do("GET", "/test/view", nil, signIn(t, r, f.Person(caller.Viewer)), evil).Want(200, "")
}

func TestWithoutAPublicURLTheRequestsOwnOriginCounts(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{PublicURL: "request"})
	for origin, want := range map[string]bool{
		"http://dashboard.test": true, "http://dashboard.test:80": true, "https://dashboard.test": false, "http://other.test": false, "null": false,
	} {
		q := httptest.NewRequest("GET", "/", nil)
		q.Host = "dashboard.test"
		q.Header.Set("Origin", origin)
		if got := r.Guard.SameOrigin(q); got != want {
			t.Errorf("SameOrigin(%s) = %v; want %v", origin, got, want)
		}
	}
}

func TestNoAnswerGrantsAnotherOriginAnything(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{})
	for _, method := range []string{"OPTIONS", "GET", "POST"} {
		a := r.Do(method, "/test/view", nil, accesstest.Header("Origin", "https://evil.test"), accesstest.Header("Access-Control-Request-Method", "POST"))
		for name := range a.Header {
			if len(name) > 14 && name[:14] == "Access-Control" {
				t.Errorf("%s: %s: %s; want no such header", method, name, a.Header.Get(name))
			}
		}
	}
}
