package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// An object about to be shown loses secrets in all common places, and nothing that a diagnosis needs.
func TestObject(t *testing.T) {
	t.Parallel()
	in := `{"apiVersion":"v1","kind":"List","items":[
{"kind":"Deployment","metadata":{"name":"token-service","annotations":{"db-password":"HIDDEN","note":"see postgres://bob:HIDDEN@db/shop",
 "kubectl.kubernetes.io/last-applied-configuration":"{\"kind\":\"Deployment\",\"spec\":{\"replicas\":9007199254740993,\"env\":[{\"name\":\"API_TOKEN\",\"value\":\"HIDDEN\"}]}}"}},
 "spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"app","image":"registry.example/auth-token:2","command":["app","--password","HIDDEN","--verbose","yes"],
  "args":["--token=HIDDEN","--port=80"],"env":[{"name":"DB_PASSWORD","value":"HIDDEN"},{"name":"LOG","value":"debug"},
  {"name":"OTHER_SECRET","valueFrom":{"secretKeyRef":{"name":"db","key":"DATABASE_URL"}}},{"name":"DSN","value":"mysql://u:HIDDEN@h/d"}]}],
  "volumes":[{"name":"v","secret":{"secretName":"web-tls"}}],"imagePullSecrets":[{"name":"regcred"}],"automountServiceAccountToken":true}}}},
{"kind":"ConfigMap","data":{"app.yaml":"db:\n  password: HIDDEN\n  host: db\n","API_KEY":"HIDDEN"},"binaryData":{"store.jks":"SElEREVO"}},
{"kind":"Secret","data":{"a":"SElEREVO"},"stringData":{"b":"HIDDEN"}},
{"kind":"Widget","spec":{"password":"HIDDEN","tokenUrl":"https://id.example/token","passwords":["HIDDEN"],"tokens":{"a":"HIDDEN","b":"HIDDEN"},"nested":{"list":["Bearer HIDDEN0123456789"]}}}]}`
	var o map[string]any
	if err := json.Unmarshal([]byte(in), &o); err != nil {
		t.Fatal(err)
	}
	redact.Object(o)
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	once := string(raw)
	for _, gone := range []string{"HIDDEN", "SElEREVO"} {
		if strings.Contains(once, gone) {
			t.Errorf("%s is still in %s; want !strings.Contains(once, gone)", gone, once)
		}
	}
	for _, kept := range []string{
		`"token-service"`, `"registry.example/auth-token:2"`, `"--verbose","yes"`, `"--port=80"`, `"value":"debug"`, `"key":"DATABASE_URL"`, `"secretName":"web-tls"`,
		`{"name":"regcred"}`, `"automountServiceAccountToken":true`, `host: db`, `"tokenUrl":"https://id.example/token"`, `9007199254740993`, `"DB_PASSWORD"`, `"store.jks":"[redacted 6 bytes]"`,
	} {
		if !strings.Contains(once, kept) {
			t.Errorf("%s is gone from %s; want strings.Contains(once, kept)", kept, once)
		}
	}
	redact.Object(o)
	if raw, err = json.Marshal(o); err != nil || string(raw) != once {
		t.Errorf("twice is not as once: %s; want string(raw) == once", raw)
	}
}

// For any JSON object, redaction terminates and is idempotent.
func FuzzObject(f *testing.F) {
	for _, s := range []string{`{"kind":"ConfigMap","data":{"a":"password=x"}}`, `{"a":[["--token","x"],{"name":"KEY","value":"y"}]}`, `{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"token\":\"x\"}"}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var o map[string]any
		if json.Unmarshal(body, &o) != nil {
			return
		}
		redact.Object(o)
		once, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		redact.Object(o)
		if twice, err := json.Marshal(o); err != nil || string(twice) != string(once) {
			t.Errorf("%s, then %s, then %s, %v; want string(twice) == string(once)", body, once, twice, err)
		}
	})
}
