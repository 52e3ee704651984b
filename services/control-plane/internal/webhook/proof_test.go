package webhook_test

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// Valid and invalid proofs of a delivery. The signatures are made by openssl and Python.
func TestProofs(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	body := sampleB(t, parsePayload{"ref": "refs/heads/other"})
	before := len(p.Events(""))
	sum := opensslHMAC(t, secret, body)
	other := opensslHMAC(t, "another-0123456789abcdef", body)
	for _, c := range []struct {
		name, path string
		header     []string
		ok         bool
	}{
		{"token", pathA, []string{"X-Forge-A-Token", secret}, true},
		{"token by the product's name", pathA, []string{"X-Gitlab-Token", secret}, true},
		{"one of two tokens", pathA, []string{"X-Gitlab-Token", "old", "X-Forge-A-Token", secret}, true},
		{"no token", pathA, nil, false},
		{"empty token", pathA, []string{"X-Forge-A-Token", ""}, false},
		{"wrong token", pathA, []string{"X-Forge-A-Token", secret[:len(secret)-1] + "0"}, false},
		{"beginning of the token", pathA, []string{"X-Forge-A-Token", secret[:5]}, false},
		{"token in another case", pathA, []string{"X-Forge-A-Token", strings.ToUpper(secret)}, false},
		{"token and more", pathA, []string{"X-Forge-A-Token", secret + "x"}, false},
		{"token as a bearer", pathA, []string{"Authorization", "Bearer " + secret}, false},
		{"an operator's bearer", pathA, []string{"Authorization", "Bearer " + controlplanetest.Operator}, false},
		{"forge B's proof", pathA, []string{"X-Hub-Signature-256", "sha256=" + sum}, false},

		{"signature", pathB, []string{"X-Forge-B-Signature-256", "sha256=" + sum}, true},
		{"signature by the product's name", pathB, []string{"X-Hub-Signature-256", "sha256=" + sum}, true},
		{"signature in capitals", pathB, []string{"X-Hub-Signature-256", "sha256=" + strings.ToUpper(sum)}, true},
		{"no signature", pathB, nil, false},
		{"signature under another secret", pathB, []string{"X-Hub-Signature-256", "sha256=" + other}, false},
		{"signature without its method", pathB, []string{"X-Hub-Signature-256", sum}, false},
		{"cut signature", pathB, []string{"X-Hub-Signature-256", "sha256=" + sum[:62]}, false},
		{"empty signature", pathB, []string{"X-Hub-Signature-256", "sha256="}, false},
		{"no hexadecimal", pathB, []string{"X-Hub-Signature-256", "sha256=" + strings.Repeat("z", 64)}, false},
		{"the older method", pathB, []string{"X-Hub-Signature", "sha1=" + sum[:40]}, false},
		{"forge A's proof", pathB, []string{"X-Forge-A-Token", secret}, false},
	} {
		r := p.Call("POST", c.path, "", body, c.header...)
		switch {
		case c.ok && r.Status != 200:
			t.Errorf("%s: %d %s", c.name, r.Status, r.Body)
		case !c.ok && (r.Status != 401 || r.Code() != "invalid_webhook_proof" || r.Header.Get("WWW-Authenticate") == ""):
			t.Errorf("%s: %d %s", c.name, r.Status, r.Body)
		case !c.ok && strings.Contains(string(r.Body), secret):
			t.Errorf("%s: the answer holds the secret", c.name)
		}
	}
	changed := strings.Replace(body, "ada", "eve", 1)
	p.Refused(401, "invalid_webhook_proof", "POST", pathB, "", changed, "X-Hub-Signature-256", "sha256="+sum)
	if after := len(p.Events("")); after != before {
		t.Errorf("%d events written for strangers; want after == %v", after-before, before)
	}
}

// With a signing token set, forge A must sign, and the token alone is refused.
func TestSignedDeliveries(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef0123456789abcdef")
	token := "whsec_" + base64.StdEncoding.EncodeToString(key)
	p := startWithSecret(t, "MODELREPO_WEBHOOK_SIGNING_TOKEN="+token)
	body := sampleA(t, nil)
	begin := time.Now() // one instant for all: a second that passes here must not make two stamps equal
	at := func(d time.Duration) string { return strconv.FormatInt(begin.Add(d).Unix(), 10) }
	signed := func(id, stamp, signature string) []string {
		return []string{"webhook-id", id, "webhook-timestamp", stamp, "webhook-signature", signature, "X-Gitlab-Event", "Push Hook"}
	}
	now := at(0)
	good := pythonSignature(t, token, "msg_1", now, body)
	wrong := pythonSignature(t, "whsec_"+base64.StdEncoding.EncodeToString([]byte("another")), "msg_1", now, body)
	late, early := at(-310*time.Second), at(time.Hour) // far ahead: a slow run must not come near it
	for name, header := range map[string][]string{
		"token alone":                    headersA(),
		"another key":                    signed("msg_1", now, wrong),
		"another id":                     signed("msg_2", now, good),
		"another time":                   signed("msg_1", at(-time.Second), good),
		"another version":                signed("msg_1", now, "v2,"+strings.TrimPrefix(good, "v1,")),
		"no version":                     signed("msg_1", now, strings.TrimPrefix(good, "v1,")),
		"no id":                          signed("", now, good),
		"no time":                        signed("msg_1", "", good),
		"a time that is no number":       signed("msg_1", "soon", good),
		"a time beyond numbers":          signed("msg_1", "99999999999999999999", good),
		"no signature":                   signed("msg_1", now, ""),
		"too old":                        signed("msg_1", late, pythonSignature(t, token, "msg_1", late, body)),
		"too new":                        signed("msg_1", early, pythonSignature(t, token, "msg_1", early, body)),
		"a wrong signature and a token":  append(signed("msg_1", now, wrong), "X-Gitlab-Token", secret),
		"signature of another body":      signed("msg_1", now, pythonSignature(t, token, "msg_1", now, body+" ")),
		"base64 without its last letter": signed("msg_1", now, good[:len(good)-2]),
	} {
		if r := p.Call("POST", pathA, "", body, header...); r.Status != 401 || r.Code() != "invalid_webhook_proof" {
			t.Errorf(`%s: %d %s; want r.Status == 401 && r.Code() == "invalid_webhook_proof"`, name, r.Status, r.Body)
		}
	}
	// One of several signatures is enough: that is how a key is rotated.
	out := p.Want(200, "POST", pathA, "", body, signed("msg_1", now, wrong+" "+good)...).Object(t)
	if !slices.Equal(stringsOf(out["models_marked_stale"]), everyModel) {
		t.Fatalf(`signed: %v; want slices.Equal(stringsOf(out["models_marked_stale"]), everyModel)`, out)
	}
	if again := p.Want(200, "POST", pathA, "", body, signed("msg_1", now, good)...).Object(t); again["reason"] != "duplicate delivery" {
		t.Errorf(`replayed: %v; want again["reason"] == "duplicate delivery"`, again)
	}
	if e := listEvents(p)[0]; e["delivery_id"] != "msg_1" {
		t.Errorf(`event %v; want e["delivery_id"] == "msg_1"`, e)
	}
	// Forge B is authenticated as before.
	if out := deliverB(p, sampleB(t, nil)); out["duplicate"] != false {
		t.Errorf(`forge B: %v; want out["duplicate"] == false`, out)
	}
}
