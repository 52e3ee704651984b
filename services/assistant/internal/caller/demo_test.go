package caller_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

var admin = caller.Caller{Principal: "p", Role: guard.Admin}

// sealPayload creates a demo key in the documented format from any payload.
func sealPayload(secret, text string) string {
	payload := base64.RawURLEncoding.EncodeToString([]byte(text))
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(payload))
	return "ki-ro-" + payload + "." + hex.EncodeToString(h.Sum(nil))[:32]
}

func TestDemoKeys(t *testing.T) {
	t.Parallel()
	c := newCallers(t, keys)
	in := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).Unix(), 10) }
	valid := sealPayload(demoSecret, "ana@example.org:"+in(time.Hour))
	for key, want := range map[string]bool{
		valid: true,
		sealPayload(demoSecret, "ana@example.org:"+in(time.Second)):          true,
		sealPayload(demoSecret, "a:b:c@example.org:"+in(time.Hour)):          true,
		sealPayload(demoSecret, ":"+in(time.Hour)):                           true,
		sealPayload(demoSecret, "ana@example.org:"+in(0)):                    false,
		sealPayload(demoSecret, "ana@example.org:"+in(-time.Hour)):           false,
		sealPayload(demoSecret, "ana@example.org:+"+in(time.Hour)):           false,
		sealPayload(demoSecret, "ana@example.org:-1"):                        false,
		sealPayload(demoSecret, "ana@example.org: "+in(time.Hour)):           false,
		sealPayload(demoSecret, "ana@example.org:99999999999999999999"):      false,
		sealPayload(demoSecret, "ana@example.org:"):                          false,
		sealPayload(demoSecret, "ana@example.org"):                           false,
		sealPayload(demoSecret, ""):                                          false,
		sealPayload("another secret, as long as it", "a@b.c:"+in(time.Hour)): false,
		valid[:len(valid)-1]:                   false,
		valid + "0":                            false,
		strings.ToUpper(valid[len(valid)-32:]): false,
		valid[:len(valid)-32] + strings.ToUpper(valid[len(valid)-32:]): false,
		"ki-op-" + strings.TrimPrefix(valid, "ki-ro-"):                 false,
		strings.Replace(valid, ".", "=.", 1):                           false,
		strings.Replace(valid, ".", "", 1):                             false,
		"ki-ro-.":                                                      false,
		"ki-ro-":                                                       false,
	} {
		who, err := c.Identify(key)
		if (err == nil) != want || want && (who.Role != guard.Readonly || who.Principal != caller.KeyID(key)) || err != nil && !fault.Unauthenticated.Has(err) {
			t.Errorf("%s: %+v, %v; want (err == nil) == want && (!want || !who.Role != guard.Readonly || who.Principal != caller.KeyID(key)) && (err == nil || fault.Unauthenticated.Has(err))", key, who, err)
		}
	}
}

func TestNewSecretVoidsKeys(t *testing.T) {
	t.Parallel()
	minted, err := newCallers(t, keys).Mint(admin, []byte(`{"email":"ana@example.org"}`))
	if err != nil {
		t.Fatal(err)
	}
	rotated := keys
	rotated.DemoSecret = "fedcba9876543210fedcba9876543210"
	static := keys
	static.Backend = ""
	for name, cfg := range map[string]caller.Config{"rotated": rotated, "static": static} {
		if _, err := newCallers(t, cfg).Identify(minted.APIKey); !fault.Unauthenticated.Has(err) {
			t.Errorf("%s: %v; want fault.Unauthenticated.Has(err)", name, err)
		}
	}
}

func TestMint(t *testing.T) {
	t.Parallel()
	c := newCallers(t, keys)
	for body, hours := range map[string]int64{
		`{"email":"ana@example.org"}`: 168, `{"email":"ana@example.org","ttl_hours":null}`: 168, `{"email":"ana@example.org","ttl_hours":1}`: 1,
		`{"email":"a:b+c@x.y.z","ttl_hours":720}`: 720, ` { "ttl_hours" : 24 , "email" : "änä@exämple.org" } `: 24,
	} {
		m, err := c.Mint(admin, []byte(body))
		if err != nil || m.ExpiresInSeconds != hours*3600 || m.ExpiresAt != now.Unix()+hours*3600 {
			t.Errorf("%s: %+v, %v; want m.ExpiresInSeconds == hours * 3600 && m.ExpiresAt == now.Unix() + hours*3600", body, m, err)
			continue
		}
		if m.APIKey != sealPayload(demoSecret, m.Email+":"+strconv.FormatInt(m.ExpiresAt, 10)) {
			t.Errorf(`%s: key %s; want m.APIKey == sealPayload(demoSecret, m.Email+":"+strconv.FormatInt(m.ExpiresAt, 10))`, body, m.APIKey)
		}
		if who, err := c.Identify(m.APIKey); err != nil || who.Role != guard.Readonly {
			t.Errorf("%s: %+v, %v; want who.Role == guard.Readonly", body, who, err)
		}
	}
	for body, status := range map[string]int{
		``: 422, `null`: 422, `[]`: 422, `{}`: 422, `{"email":null}`: 422, `{"email":"ana@example.org","email":"b@example.org"}`: 422, `{"Email":"ana@example.org"}`: 422,
		`{"email":""}`: 422, `{"email":"ana"}`: 422, `{"email":"ana@"}`: 422, `{"email":"@example.org"}`: 422, `{"email":"ana@example"}`: 422, `{"email":"ana@.org"}`: 422,
		`{"email":"ana@example."}`: 422, `{"email":"ana@a..b"}`: 422, `{"email":"a@b@example.org"}`: 422, `{"email":"a b@example.org"}`: 422, `{"email":" ana@example.org"}`: 422,
		`{"email":"a\nb@example.org"}`: 422, `{"email":"a\u0000b@example.org"}`: 422, `{"email":"a\u202eb@example.org"}`: 422, `{"email":"` + strings.Repeat("a", 255) + `@b.c"}`: 422,
		`{"email":"ana@example.org","ttl_hours":0}`: 422, `{"email":"ana@example.org","ttl_hours":-1}`: 422, `{"email":"ana@example.org","ttl_hours":1.5}`: 422, `{"email":"ana@example.org","ttl_hours":1e2}`: 422,
		`{"email":"ana@example.org","ttl_hours":"1"}`: 422, `{"email":"ana@example.org","ttl_hours":true}`: 422, `{"email":"ana@example.org","ttl_hours":[1]}`: 422,
		`{"email":"ana@example.org","ttl_hours":721}`: 400, `{"email":"ana@example.org","ttl_hours":99999999999999999999999999}`: 400,
	} {
		if _, err := c.Mint(admin, []byte(body)); err == nil || problem.From(err).Status() != status {
			t.Errorf("%s: %v, want %d", body, err, status)
		}
	}
	for role, status := range map[guard.Role]int{guard.Operator: 403, guard.Readonly: 403, "": 403} {
		if err := c.MayMint(caller.Caller{Role: role}); err == nil || problem.From(err).Status() != status {
			t.Errorf("%s: %v; want an error && problem.From(err).Status() == status", role, err)
		}
	}
	if err := c.MayMint(admin); err != nil {
		t.Error(err)
	}
}

// FuzzKey: a bearer is either known or refused with 401, and only keys in the lists and sealed keys are known.
func FuzzKey(f *testing.F) {
	c, err := caller.New(keys)
	if err != nil {
		f.Fatal(err)
	}
	e := newServer(c)
	f.Add("Bearer " + adminKey)
	f.Add("Bearer " + sealPayload(demoSecret, "ana@example.org:"+strconv.FormatInt(now.Unix()+1, 10)))
	f.Add("Bearer " + sealPayload(demoSecret, "ana@example.org:x"))
	f.Add("bearer a.b.c")
	f.Add("Basic YTpi")
	f.Fuzz(func(t *testing.T, header string) {
		resp := sendRequest(e, http.MethodGet, "/v1/who", "", "Authorization", header)
		body := bodyOf(t, resp)
		if resp.StatusCode == http.StatusUnauthorized {
			if !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), `Bearer realm="assistant"`) || !json.Valid([]byte(body)) {
				t.Fatalf("%v %s; want strings.HasPrefix(resp.Header.Get(\"WWW-Authenticate\"), `Bearer realm=\"assistant\"`) && json.Valid([]byte(body))", resp.Header, body)
			}
			return
		}
		_, key, _ := strings.Cut(strings.TrimSpace(header), " ")
		key = strings.TrimSpace(key)
		if resp.StatusCode != http.StatusOK || !strings.HasPrefix(body, caller.KeyID(key)+" ") {
			t.Fatalf(`%q: %d %s; want resp.StatusCode == http.StatusOK && strings.HasPrefix(body, caller.KeyID(key)+" ")`, header, resp.StatusCode, body)
		}
		for _, known := range []string{adminKey, operatorKey, readonlyKey, "ki-admin-another-long-one.x.y"} {
			if key == known {
				return
			}
		}
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(key[:strings.LastIndex(key, ".")], "ki-ro-"))
		if err != nil || key != sealPayload(demoSecret, string(raw)) {
			t.Fatalf("took %q; want key == sealPayload(demoSecret, string(raw))", key)
		}
	})
}

// FuzzDemoKey: a minted key is valid until it expires, and not a second longer.
func FuzzDemoKey(f *testing.F) {
	f.Add("ana@example.org", 1)
	f.Add("a:b@x.y", 720)
	f.Fuzz(func(t *testing.T, email string, hours int) {
		at := now
		cfg := keys
		cfg.Now = func() time.Time { return at }
		c := newCallers(t, cfg)
		body, err := json.Marshal(map[string]any{"email": email, "ttl_hours": hours})
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.Mint(admin, body)
		if err != nil {
			if s := problem.From(err).Status(); s != 422 && s != 400 || s == 400 && hours <= 720 {
				t.Fatalf("%s: %v; want (s == 422 || s == 400) && (s != 400 || hours > 720)", body, err)
			}
			return
		}
		at = time.Unix(m.ExpiresAt-1, 0)
		if _, err := c.Identify(m.APIKey); err != nil || m.Email != email || hours < 1 || hours > 720 {
			t.Fatalf("%s: %v; want m.Email == email && hours >= 1 && hours <= 720", body, err)
		}
		at = time.Unix(m.ExpiresAt, 0)
		if _, err := c.Identify(m.APIKey); err == nil {
			t.Fatalf("%s: valid after its end; want an error", body)
		}
	})
}
