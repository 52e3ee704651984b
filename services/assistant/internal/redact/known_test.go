package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// readSecret passes a Secret with these values through the transport.
func readSecret(t *testing.T, values map[string]string) {
	t.Helper()
	data := map[string]string{}
	for name, value := range values {
		data[name] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	body, err := json.Marshal(map[string]any{"kind": "SecretList", "items": []any{map[string]any{"data": data}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, n, err := sendThrough(t, secretsPath, "application/json", body); err != nil || n != len(values) {
		t.Fatalf("%d values redacted, %v; want %d", n, err, len(values))
	}
}

// A value of a Secret that was read is found anywhere, without a name next to it and in other notations.
func TestValuesOfReadSecretsAreRedactedEverywhere(t *testing.T) {
	t.Parallel()
	readSecret(t, map[string]string{
		"a": "kn0wn-V4lue-one", "dsn": "kn0wn two/with blank", "password": "plainknownword",
		"app.yaml": "mode: fast\nupstream:\n  password: kn0wn-in-file-3\n  id: aB3dE5gH7jK9mN1pQ3sT5v\n",
	})
	for _, tc := range []struct{ text, value string }{
		{"GET /x/kn0wn-V4lue-one/y 200", "kn0wn-V4lue-one"}, {"prefixkn0wn-V4lue-onesuffix", "kn0wn-V4lue-one"},
		{"kn0wn-V4lue-one", "kn0wn-V4lue-one"}, {"said kn0wn two/with blank, then", "kn0wn two/with blank"},
		{"kn0wn%20two%2Fwith%20blank", "two%2Fwith"}, {"kn0wn-\x1b[1mV4lue\x1b[0m-one", "V4lue"}, {`k\u006e0wn-V4lue-one`, "V4lue"},
		{"as " + base64.StdEncoding.EncodeToString([]byte("kn0wn-V4lue-one")), "a24wd24tVjRsdWUtb25l"},
		{"in " + base64.StdEncoding.EncodeToString([]byte("x=1\ny=kn0wn-V4lue-one\n")), "a24wd24t"},
		{"it is plainknownword", "plainknownword"}, {"from the file: kn0wn-in-file-3", "kn0wn-in-file-3"}, {"aB3dE5gH7jK9mN1pQ3sT5v", "aB3dE5gH7jK9mN1pQ3sT5v"},
	} {
		got := redact.Text(tc.text)
		if strings.Contains(got, tc.value) || !strings.Contains(got, "[redacted ") {
			t.Errorf("%q became %q; want %q gone", tc.text, got, tc.value)
		}
		if again := redact.Text(got); again != got {
			t.Errorf("twice makes %q of %q; want again == %v", again, got, got)
		}
	}
}

// The password inside a value is found without the rest of it.
func TestPartsOfReadSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	readSecret(t, map[string]string{"DATABASE_URL": "postgres://app:1nsidePw9@db/x", ".dockerconfigjson": `{"auths":{"registry.example":{"username":"u","password":"1nsideDocker7"}}}`})
	for _, value := range []string{"1nsidePw9", "1nsideDocker7"} {
		if got := redact.Text("auth failed, tried " + value); strings.Contains(got, value) {
			t.Errorf("got %q, want %q gone", got, value)
		}
	}
}

// A user cannot find out by guessing whether some Secret has a value: typed text stays, except for what looks like a
// secret.
func TestTypedTextTellsNothingOfSecrets(t *testing.T) {
	t.Parallel()
	readSecret(t, map[string]string{"password": "gu3ssed-value"})
	if got, want := redact.Typed("is it gu3ssed-value?"), "is it gu3ssed-value?"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := redact.Typed("my password is hunter2-Xy9"); strings.Contains(got, "hunter2-Xy9") {
		t.Errorf("got %q, want the password gone", got)
	}
}

// Public values in a Secret do not disappear from other texts.
func TestNamesInReadSecretsStay(t *testing.T) {
	t.Parallel()
	readSecret(t, map[string]string{
		"username": "shopadmin", "host": "gateway-db.shop.svc", "port": "54321", "namespace": "payments-eu1", "mode": "read-only", "enabled": "true",
		"JAVA_OPTS": "-Xmx512m", "IMAGE": "registry.example/shop/web:2.4.0", "S3_ENDPOINT": "http://minio.shop:9000", "TZ": "Europe/Berlin", "ENVIRONMENT": "Production",
		"db-password": "exemplar", "short": "ab12", "tls.crt": "-----BEGIN CERTIFICATE-----\nMIIBhTCCASugAwIBAgIQIRi6zePL6mKjOipn\n-----END CERTIFICATE-----\n", "secret": "knownwholeword",
	})
	for _, text := range []string{
		"user shopadmin connects to gateway-db.shop.svc:54321", "pod payments-eu1/web is read-only", "enabled: true", "ab12", "MIIBhTCCASugAwIBAgIQIRi6zePL6mKjOipn",
		`Failed to pull image "registry.exemplar/shop/web:2.4.0"`, "db.exemplar:5432 and admin@exemplar.org", "myknownwholewords stay", "java -Xmx512m was killed", "pulls registry.example/shop/web:2.4.0 in Europe/Berlin", "http://minio.shop:9000 refused the connection", "Production moved",
	} {
		if got := redact.Text(text); got != text {
			t.Errorf("%q became %q; want got == %v", text, got, text)
		}
	}
}

// Values that a person writes into a manifest are redacted there, but not in the texts of others.
func TestManifestsOfPeopleAreNotRemembered(t *testing.T) {
	t.Parallel()
	redact.Object(map[string]any{"kind": "Secret", "stringData": map[string]any{"password": "wr1tten-by-hand"}})
	if got, want := redact.Text("saw wr1tten-by-hand"), "saw wr1tten-by-hand"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
