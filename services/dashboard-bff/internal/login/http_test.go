package login_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func password(text string) any { return map[string]any{"password": text} }

func TestLoginExchangesAPasswordForATokenWithExactlyTheContractsClaims(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r := f.Replica(accesstest.Options{})
	a := r.Do("POST", "/api/auth/login", password(accesstest.AdminPassword)).Want(http.StatusOK, "")
	if got := a.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control = %q; want no-store", got)
	}
	body := a.Object()
	token, _ := body["token"].(string)
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token+"..", ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(raw, &claims); err != nil {
		t.Fatalf("claims %q: %v", raw, err)
	}
	iat, _ := claims["iat"].(float64)
	jti, _ := claims["jti"].(string)
	if age := f.Now().Sub(time.Unix(int64(iat), 0)); age < 0 || age > time.Minute || len(jti) != 36 {
		t.Errorf("iat is %s old, jti %q; want the present and a UUID", age, jti)
	}
	mac := hmac.New(sha256.New, []byte(accesstest.JWTSecret))
	mac.Write([]byte("admin\x00" + accesstest.AdminPassword))
	want := map[string]any{
		"iss": "mlp-dashboard", "aud": "mlp-dashboard", "sub": "local:admin", "role": "admin", "tenant": "default", "jti": jti,
		"iat": iat, "exp": iat + 12*3600, "auth_time": iat, "amr": []any{"pwd"},
		"pv": hex.EncodeToString(mac.Sum(nil))[:16],
	}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	expires := time.Unix(int64(iat)+12*3600, 0).UTC().Format(time.RFC3339)
	if diff := cmp.Diff(map[string]any{"token": token, "role": "admin", "tenant": "default", "expires_at": expires}, body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestLoginRefusals(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r := f.Replica(accesstest.Options{})
	for _, c := range []struct {
		name   string
		body   any
		status int
		code   string
	}{
		{"wrong password", password("no"), 401, "invalid_password"},
		{"empty password", password(""), 401, "invalid_password"},
		{"password with a blank", password(accesstest.AdminPassword + " "), 401, "invalid_password"},
		{"no password", map[string]any{}, 422, "validation_failed"},
		{"null", map[string]any{"password": nil}, 422, "validation_failed"},
		{"number", map[string]any{"password": 1}, 422, "validation_failed"},
		{"unknown member", map[string]any{"password": "x", "role": "admin"}, 422, "validation_failed"},
	} {
		a := r.Do("POST", "/api/auth/login", c.body)
		if a.Code != c.status || a.Text("code") != c.code {
			t.Errorf("%s: %d %s; want %d %s", c.name, a.Code, a.Body, c.status, c.code)
		}
		if want := map[bool]string{true: `Bearer realm="dashboard"`}[c.status == 401]; a.Header.Get("WWW-Authenticate") != want {
			t.Errorf("%s: WWW-Authenticate %q; want %q", c.name, a.Header.Get("WWW-Authenticate"), want)
		}
	}
	if got := len(f.Facts("auth.login_failed")); got != 3 {
		t.Errorf("%d facts auth.login_failed; want 3, one of each wrong password", got)
	}
}

func TestLogoutEndsTheTokenOnEveryReplicaWithin2Seconds(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	a, b := f.Replica(accesstest.Options{}), f.Replica(accesstest.Options{})
	token := accesstest.Bearer(a.SignIn(caller.Viewer))
	b.Do("GET", "/api/auth/me", nil, token).Want(200, "") // b now remembers that it is good
	a.Do("POST", "/api/auth/logout", nil, token).Want(204, "")
	a.Do("GET", "/api/auth/me", nil, token).Want(401, "invalid_token")
	f.Advance(2 * time.Second)
	b.Do("GET", "/api/auth/me", nil, token).Want(401, "invalid_token")
}

func TestMeTellsWhoAsks(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r := f.Replica(accesstest.Options{})
	got := r.Do("GET", "/api/auth/me", nil, accesstest.Bearer(r.SignIn(caller.Viewer))).Want(200, "").Object()
	want := map[string]any{
		"sub": "local:viewer", "role": "viewer", "tenant": "default", "auth_method": "password", "break_glass": false,
		"capabilities": []any{"alert.ack", "comment.write", "copilot.ask", "search", "snapshot.create", "view"},
		"auth_time":    got["auth_time"], "expires_at": got["expires_at"],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("me (-want +got):\n%s", diff)
	}
}
