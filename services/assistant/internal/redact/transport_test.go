package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// sendThrough sends a body as a server's response through the transport.
func sendThrough(t testing.TB, path, contentType string, body []byte) (string, int, error) {
	t.Helper()
	n := 0
	rt := redact.Transport(answer{contentType, body}, func(kind string, k int) {
		if kind != "secret" {
			t.Errorf(`counts a %s; want "secret"`, kind)
		}
		n += k
	})
	resp, err := rt.RoundTrip(httptest.NewRequest(http.MethodGet, "https://cluster.example"+path, nil))
	if err != nil {
		return "", n, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.ContentLength >= 0 && resp.ContentLength != int64(len(out)) {
		t.Errorf("says %d bytes and has %d; want (resp.ContentLength < 0 || resp.ContentLength == int64(len(out)))", resp.ContentLength, len(out))
	}
	return string(out), n, nil
}

type answer struct {
	contentType string
	body        []byte
}

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {a.contentType}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)),
	}, nil
}

const secretsPath, podsPath = "/api/v1/namespaces/shop/secrets", "/api/v1/namespaces/shop/pods"

func TestTransportRedactsSecrets(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, path, in, want string }{
		{"one", secretsPath + "/db", `{"kind":"Secret","data":{"password":"aHVudGVyMg=="},"metadata":{"name":"db"}}`,
			`{"data":{"password":"[redacted 7 bytes]"},"kind":"Secret","metadata":{"name":"db"}}`},
		{"plain", podsPath, `{"kind":"Secret","stringData":{"password":"hunter2"}}`, `{"kind":"Secret","stringData":{"password":"[redacted 7 bytes]"}}`},
		{"list without kinds", podsPath, `{"items":[{"data":{"a":"aHVudGVyMg=="}},{"data":null}],"kind":"SecretList"}`,
			`{"items":[{"data":{"a":"[redacted 7 bytes]"}},{"data":null}],"kind":"SecretList"}`},
		{"mixed list", podsPath, `{"items":[{"kind":"ConfigMap","data":{"a":"b"}},{"kind":"Secret","data":{"a":"aHVudGVyMg=="}}],"kind":"List"}`,
			`{"items":[{"data":{"a":"b"},"kind":"ConfigMap"},{"data":{"a":"[redacted 7 bytes]"},"kind":"Secret"}],"kind":"List"}`},
		{"last applied", podsPath, `{"kind":"PartialObjectMetadata","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"kind\":\"Secret\",\"stringData\":{\"a\":\"hunter2\"}}\n"}}}`,
			`{"kind":"PartialObjectMetadata","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"kind\":\"Secret\",\"stringData\":{\"a\":\"[redacted 7 bytes]\"}}\n"}}}`},
		{"table", secretsPath, `{"kind":"Table","rows":[{"cells":["db"],"object":{"kind":"Secret","data":{"a":"aHVudGVyMg=="}}}]}`,
			`{"kind":"Table","rows":[{"cells":["db"],"object":{"data":{"a":"[redacted 7 bytes]"},"kind":"Secret"}}]}`},
		{"without a kind", secretsPath + "/db", `{"data":{"a":"aHVudGVyMg=="}}`, `{"data":{"a":"[redacted 7 bytes]"}}`},
		{"escaped", podsPath, `{"kind":"\u0053ecret","data":{"a":"aHVudGVyMg=="}}`, `{"data":{"a":"[redacted 7 bytes]"},"kind":"Secret"}`},
		{"numbers stay", podsPath, `{"kind":"Secret","data":{"a":"aHVudGVyMg=="},"n":12345678901234567890.10}`, `{"data":{"a":"[redacted 7 bytes]"},"kind":"Secret","n":12345678901234567890.10}`},
	} {
		out, n, err := sendThrough(t, tc.path, "application/json", []byte(tc.in))
		if err != nil || strings.TrimSpace(out) != tc.want || n != 1 {
			t.Errorf("%s: %d, %v\n got %s\nwant %s", tc.name, n, err, out, tc.want)
		}
	}
}

func TestTransportPassesTheRest(t *testing.T) {
	t.Parallel()
	pods := `{"kind":"PodList","items":[{"spec":{"volumes":[{"secret":{"secretName":"db"}}],"x":"\u003c"}}]}`
	for _, tc := range []struct{ path, contentType, body string }{
		{podsPath, "application/json", pods}, {podsPath + "/a/log", "text/plain; charset=utf-8", `{"kind":"Secret","data":{"a":"b"}}`},
		{podsPath, "application/json", ""}, {podsPath, "application/json;as=Table;v=v1;g=meta.k8s.io", `{"kind":"Table"}`},
	} {
		if out, n, err := sendThrough(t, tc.path, tc.contentType, []byte(tc.body)); err != nil || out != tc.body || n != 0 {
			t.Errorf("%s: %q became %q, %d, %v; want out == tc.body && n == 0", tc.path, tc.body, out, n, err)
		}
	}
}

// A namespace, pod or proxy may be called secrets; below each of them Secrets are still Secrets.
func TestTransportKnowsTheResource(t *testing.T) {
	t.Parallel()
	const api = "/api/v1/namespaces/"
	for path, want := range map[string]bool{
		api + "secrets": false, api + "secrets/pods": false, api + "secrets/pods/web/log": false, api + "shop/pods/secrets/log": false,
		"/apis/apps/v1/namespaces/secrets/deployments/secrets": false, "/secrets/" + podsPath: false, api + "api/pods": false,
		api + "secrets/secrets": true, api + "secrets/secrets/db": true, "/api/v1/secrets": true, "/api/v1/watch/secrets": true,
		"/api/v1/watch/namespaces/shop/secrets": true, "/k8s/clusters/c-1" + secretsPath: true, "/api/v1" + secretsPath: true, "/apis/x.example/v1beta1/secrets": true,
		"/api/v1//secrets": true, "/api/v1/./namespaces/a/../shop/secrets": true, "/other/secrets": true,
	} {
		_, _, err := sendThrough(t, path, "text/plain", []byte("listening"))
		if got := err != nil; got != want {
			t.Errorf("%s: of secrets %v, want %v", path, got, want)
		}
		resp, err := redact.Transport(answer{"application/json", []byte("{}")}, nil).RoundTrip(httptest.NewRequest(http.MethodPatch, "https://cluster.example"+path, strings.NewReader("{}")))
		if err == nil {
			resp.Body.Close()
		}
		if got := err != nil; got != want {
			t.Errorf("%s: write refused %v, want %v", path, got, want)
		}
	}
}

// A body that cannot be parsed does not get past.
func TestTransportRefuses(t *testing.T) {
	t.Parallel()
	secret := `{"kind":"Secret","data":{"a":"hunter2"}`
	for _, tc := range []struct{ name, path, contentType, body string }{
		{"protobuf", podsPath, "application/vnd.kubernetes.protobuf", "k8s\x00"}, {"cbor", podsPath, "application/cbor", "\xa0"},
		{"yaml", podsPath, "application/yaml", "kind: Secret"}, {"no type", podsPath, "", "?"}, {"text of secrets", secretsPath, "text/plain", "hunter2"},
		{"broken", podsPath, "application/json", secret}, {"rubbish behind", podsPath, "application/json", secret + "} hunter2"},
		{"watch", podsPath + "?watch=1", "application/json", "{}"},
	} {
		if out, _, err := sendThrough(t, tc.path, tc.contentType, []byte(tc.body)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf(`%s: %q, %v; want an error && !strings.Contains(err.Error(), "hunter2")`, tc.name, out, err)
		}
	}
	rt := redact.Transport(answer{"application/json", []byte("{}")}, nil)
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodPost, http.MethodDelete} {
		if resp, err := rt.RoundTrip(httptest.NewRequest(method, "https://cluster.example"+secretsPath+"/db", strings.NewReader("{}"))); err == nil {
			resp.Body.Close()
			t.Errorf("%s of a Secret passes; want an error", method)
		}
	}
}

// The request accepts JSON, whatever a client prefers, and still permits tables.
func TestTransportAsksForJSON(t *testing.T) {
	t.Parallel()
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for accept, want := range map[string]string{
		"": "application/json", "application/vnd.kubernetes.protobuf, */*": "application/json, */*",
		"application/vnd.kubernetes.protobuf,application/json": "application/json", table + ", application/json": table + ", application/json",
		"application/cbor": "application/json",
	} {
		var got string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Accept")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{}"))
		}))
		t.Cleanup(server.Close)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+podsPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		resp, err := redact.Transport(server.Client().Transport, nil).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got != want || r.Header.Get("Accept") != accept {
			t.Errorf("%q asks for %q, want %q; the caller's request now says %q", accept, got, want, r.Header.Get("Accept"))
		}
	}
}

// findLeak finds a value of a Secret in decoded JSON by independent rules: exact kinds, as clients decode them.
func findLeak(v any, secret bool) string {
	switch v := v.(type) {
	case map[string]any:
		list := v["kind"] == "SecretList"
		secret = secret || v["kind"] == "Secret"
		for key, value := range v {
			switch {
			case secret && (key == "data" || key == "stringData"):
				values, ok := value.(map[string]any)
				if !ok {
					values = map[string]any{"": value}
				}
				for name, value := range values {
					if s, ok := value.(string); ok && !strings.HasPrefix(s, "[redacted ") {
						return fmt.Sprintf("%s.%s: %q", key, name, s)
					}
				}
			case key == "items":
				items, _ := value.([]any)
				for _, item := range items {
					if s := findLeak(item, list); s != "" {
						return s
					}
				}
			default:
				if text, ok := value.(string); ok && key == "kubectl.kubernetes.io/last-applied-configuration" {
					var inner any
					if json.Unmarshal([]byte(text), &inner) == nil {
						value = inner
					}
				}
				if s := findLeak(value, false); s != "" {
					return s
				}
			}
		}
	case []any:
		for _, item := range v {
			if s := findLeak(item, secret); s != "" {
				return s
			}
		}
	}
	return ""
}

// Valid JSON stays valid, no value of a Secret gets past, and redaction is idempotent.
func FuzzTransport(f *testing.F) {
	for _, s := range []string{
		`{"kind":"Secret","data":{"a":"aHVudGVyMg=="}}`, `{"kind":"SecretList","items":[{"data":{"a":"b"}}]}`, `{"kind":"List","items":[{"kind":"Secret","stringData":{"a":1}}]}`,
		`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\u0022kind\u0022:\u0022Secret\u0022,\"data\":{\"a\":\"b\"}}"}}}`,
		`{"kind":"\u0053ecret","data":"x"}`, `{"kind":"Secret","data":["x",{"y":"z"}]}`, `[{"kind":"Secret","Data":{"a":"b"},"data":{"a":"[redacted 1 bytes]"}}]`, `{"kind":"Pod"}`, `1`, `"Secret"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		out, _, err := sendThrough(t, podsPath, "application/json", body)
		if err != nil {
			if json.Valid(body) {
				t.Fatalf("%q: %v; want !json.Valid(body)", body, err)
			}
			return
		}
		if !json.Valid(body) {
			return
		}
		if !json.Valid([]byte(out)) {
			t.Fatalf("%q became %q; want json.Valid([]byte(out))", body, out)
		}
		var v any
		if err := json.Unmarshal([]byte(out), &v); err == nil {
			if s := findLeak(v, false); s != "" {
				t.Errorf(`%q became %q: %s; want s == ""`, body, out, s)
			}
		}
		if again, n, err := sendThrough(t, podsPath, "application/json", []byte(out)); err != nil || again != out || n != 0 {
			t.Errorf("%q, then %q, then %q, %d, %v; want again == out && n == 0", body, out, again, n, err)
		}
	})
}

// manyPods returns a list as in a large cluster, of at least 25 MB, without a Secret.
func manyPods(t testing.TB) []byte {
	raw, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		t.Fatal(err)
	}
	compact, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	for len(list.Items)*len(compact) < 26<<20 {
		pod.Name = fmt.Sprintf("web-%d", len(list.Items))
		list.Items = append(list.Items, pod)
	}
	body, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) < 25<<20 {
		t.Fatalf("only %d bytes; want len(body) >= 25 << 20", len(body))
	}
	return body
}

// A list without Secrets costs about as much as copying it. The baseline is measured in the same run.
func BenchmarkPods(b *testing.B) {
	body := manyPods(b)
	b.SetBytes(int64(len(body)))
	read := func(rt http.RoundTripper) time.Duration {
		start := time.Now()
		resp, err := rt.RoundTrip(httptest.NewRequest(http.MethodGet, "https://cluster.example"+podsPath, nil))
		if err != nil {
			b.Fatal(err)
		}
		var buf bytes.Buffer
		buf.Grow(len(body) + bytes.MinRead)
		if _, err := buf.ReadFrom(resp.Body); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	next := answer{"application/json", body}
	redacting := redact.Transport(next, nil)
	var with, without, decode time.Duration
	for b.Loop() {
		without += read(next)
		with += read(redacting)
	}
	start := time.Now()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		b.Fatal(err)
	}
	decode = time.Since(start) * time.Duration(b.N)
	b.ReportMetric(float64(with)/float64(without), "x-copy")
	b.ReportMetric(float64(with)/float64(decode), "x-decode")
	b.ReportMetric(float64(len(body))/(1<<20), "MiB")
}
