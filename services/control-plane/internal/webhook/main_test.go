package webhook_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// secret is the webhook secret of the tests.
const secret = "webhook-0123456789abcdef"

const (
	pathA = "/webhooks/modelrepo/forge-a"
	pathB = "/webhooks/modelrepo/forge-b"
)

// The heads of the sample payloads.
const (
	headA = "da1560886d4f094c3e6c9ef40349f7d38b5d27d7"
	headB = "4e2f6e4c18a7b3d05a9b1cbb7f0c27b3d3a1f08e"
	zeros = "0000000000000000000000000000000000000000"
)

var everyModel = []string{"JPCP", "MACK", "MCBOUND", "RUNTIMECLASS", "RUNTIMEREGRESSOR"}

type parsePayload = map[string]any

// payloadFromSample returns a payload from testdata with some members replaced; nil removes one.
func payloadFromSample(t testing.TB, name string, over parsePayload) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if len(over) == 0 {
		return string(raw)
	}
	var doc parsePayload
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	maps.Copy(doc, over)
	maps.DeleteFunc(doc, func(_ string, v any) bool { return v == nil })
	return controlplanetest.MustJSON(doc)
}

func sampleA(t testing.TB, over parsePayload) string {
	t.Helper()
	return payloadFromSample(t, "forge-a-push.json", over)
}
func sampleB(t testing.TB, over parsePayload) string {
	t.Helper()
	return payloadFromSample(t, "forge-b-push.json", over)
}

// pushA returns the members of a payload of forge A with one commit of these files.
func pushA(sha string, files ...string) parsePayload {
	return parsePayload{
		"after": sha, "checkout_sha": sha, "total_commits_count": 1,
		"commits": []any{parsePayload{"id": sha, "message": "change", "author": parsePayload{"name": "ada"}, "added": []string{}, "modified": files, "removed": []string{}}},
	}
}

// headersA returns headers that authenticate a delivery of forge A by the token.
func headersA(more ...string) []string {
	return append([]string{"X-Gitlab-Token", secret, "X-Gitlab-Event", "Push Hook", "X-Gitlab-Event-UUID", uuid.NewString()}, more...)
}

// headersB returns headers that authenticate a delivery of forge B, signed by an independent implementation.
func headersB(t testing.TB, body string, more ...string) []string {
	t.Helper()
	return append([]string{"X-GitHub-Event", "push", "X-GitHub-Delivery", uuid.NewString(), "X-Hub-Signature-256", "sha256=" + opensslHMAC(t, secret, body)}, more...)
}

// opensslHMAC returns the hexadecimal HMAC-SHA256 as openssl computes it.
func opensslHMAC(t testing.TB, key, body string) string {
	t.Helper()
	out := runTool(t, body, "openssl", "dgst", "-sha256", "-hmac", key)
	_, sum, ok := strings.Cut(strings.TrimSpace(out), "= ")
	if !ok {
		t.Fatalf("openssl: %q; want ok", out)
	}
	return sum
}

// pythonSignature returns v1,<base64> of a signed delivery as Python computes it.
func pythonSignature(t testing.TB, token, id, timestamp, body string) string {
	t.Helper()
	const program = `import base64, hashlib, hmac, sys
key = base64.b64decode(sys.argv[1].removeprefix("whsec_"))
signed = (sys.argv[2] + "." + sys.argv[3] + ".").encode() + sys.stdin.buffer.read()
print("v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode())`
	return strings.TrimSpace(runTool(t, body, "python3", "-c", program, token, id, timestamp))
}

func runTool(t testing.TB, stdin string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var fault bytes.Buffer
	cmd.Stderr = &fault
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, fault.Bytes())
	}
	return string(out)
}

func startWithSecret(t testing.TB, env ...string) *controlplanetest.Plane {
	t.Helper()
	return controlplanetest.Start(t, append([]string{"MODELREPO_WEBHOOK_SECRET=" + secret}, env...)...)
}

// deliverA sends a push of forge A, authenticated and new.
func deliverA(p *controlplanetest.Plane, body string, header ...string) parsePayload {
	p.T.Helper()
	return p.Want(200, "POST", pathA, "", body, headersA(header...)...).Object(p.T)
}

func deliverB(p *controlplanetest.Plane, body string, header ...string) parsePayload {
	p.T.Helper()
	return p.Want(200, "POST", pathB, "", body, headersB(p.T, body, header...)...).Object(p.T)
}

// freshnessOf returns a model's freshness.
func freshnessOf(p *controlplanetest.Plane, model string) parsePayload {
	p.T.Helper()
	for _, m := range modelrepoStatus(p)["models"].([]any) {
		if m := m.(parsePayload); m["model_id"] == model {
			return m
		}
	}
	p.T.Fatalf("no model %s", model)
	return nil
}

func modelrepoStatus(p *controlplanetest.Plane) parsePayload {
	p.T.Helper()
	return p.Want(200, "GET", "/modelrepo/status", controlplanetest.Reader, nil).Object(p.T)
}

func listEvents(p *controlplanetest.Plane) []parsePayload {
	p.T.Helper()
	return p.Want(200, "GET", "/modelrepo/events", controlplanetest.Reader, nil).List(p.T)
}

func putConfig(p *controlplanetest.Plane, settings parsePayload) {
	p.T.Helper()
	p.Want(200, "PUT", "/modelrepo/config", controlplanetest.Operator, settings)
}

// stringsOf returns the strings of a JSON array; none for any other value, so that a wrong answer fails one comparison.
func stringsOf(v any) []string {
	list, _ := v.([]any)
	out := []string{}
	for _, s := range list {
		out = append(out, s.(string))
	}
	return out
}
