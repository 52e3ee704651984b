package idp

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
)

// FuzzBearer: no text that is not signed by the provider is taken, and each is answered by a 401.
func FuzzBearer(f *testing.F) {
	path := filepath.Join(f.TempDir(), "trust.yaml")
	const file = `{version: 1, providers: [{name: a, issuer: "https://x.example", audience: p, default_role: viewer, algorithms: [EdDSA],
 jwks: {keys: [{kty: OKP, crv: Ed25519, kid: k, x: 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo}]}}]}`
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		f.Fatal(err)
	}
	r, err := New(Config{Path: path, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		f.Fatal(err)
	}
	if len(r.state.Load().providers) != 1 {
		f.Fatal(r.state.Load().fault)
	}
	f.Add("a.b.c", "")
	f.Add("eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL3guZXhhbXBsZSJ9.", "a")
	f.Add("eyJhbGciOiJFZERTQSIsImtpZCI6ImsifQ.eyJpc3MiOiJodHRwczovL3guZXhhbXBsZSIsImF1ZCI6InAiLCJleHAiOjk5OTk5OTk5OTl9.AAAA", "b")
	f.Fuzz(func(t *testing.T, raw, hint string) {
		who, err := r.Bearer(t.Context(), raw, hint, nil)
		if err == nil || problem.From(err).Status() != 401 {
			t.Fatalf("%q: got %+v, %v; want 401", raw, who, err)
		}
	})
}
