package idp_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/libs/trust"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/idp"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/idp/idptest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// bundle is a registry that trusts one issuer as idp-a.
type bundle struct {
	*idptest.Issuer
	t        *testing.T
	registry *idp.Registry
	path     string
	shift    atomic.Int64 // of the registry's clock
}

func (b *bundle) now() time.Time { return time.Now().Add(time.Duration(b.shift.Load())) }

func (b *bundle) advance(d time.Duration) { b.shift.Add(int64(d)) }

// write replaces the trust file.
func (b *bundle) write(providers ...string) {
	b.t.Helper()
	if err := os.WriteFile(b.path, []byte("version: 1\nproviders:\n"+strings.Join(providers, "")), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func setup(t *testing.T, more string) *bundle {
	t.Helper()
	b := &bundle{Issuer: idptest.New(t), t: t, path: filepath.Join(t.TempDir(), "trust.yaml")}
	b.write(b.Trust("idp-a", more))
	b.start()
	return b
}

func (b *bundle) start() {
	b.t.Helper()
	var err error
	b.registry, err = idp.New(idp.Config{
		Path: b.path, Environment: trust.Environment{LookupEnv: idptest.Environment}, Log: slog.New(slog.DiscardHandler),
		Now: b.now, Timeout: 500 * time.Millisecond,
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// watch runs the registry's poll until the test ends.
func (b *bundle) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = b.registry.Watch(ctx) }()
	b.t.Cleanup(func() { cancel(); <-done })
}

// awaitCheck waits for the readiness that the trust file has.
func (b *bundle) awaitCheck(status string) {
	b.t.Helper()
	testenv.Eventually(b.t, 5*time.Second, func() error {
		if got := b.registry.Check(b.t.Context()); got.Status != status {
			return fmt.Errorf("readiness is %s, want %s", got, status)
		}
		return nil
	})
}

const viewers = "  default_role: viewer\n"

func TestAFaultyTrustFileRefusesEveryoneAndNamesTheLine(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers)
	b.watch()
	token := b.AccessToken(nil)
	d := session.Data{Provider: "idp-a", Subject: "idp-a:1001", Tenant: "idp-a", Role: caller.Viewer, Claims: map[string]any{"sub": "1001", "iss": b.URL}}
	if err := b.registry.Admit(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	b.write(b.Trust("idp-a", viewers+"  colour: red\n"))
	b.awaitCheck(service.Fail)
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("the change showed after %s, want 2 s at most", took)
	}
	if got := b.registry.Check(t.Context()).Detail; !strings.Contains(got, "trust.yaml:9: providers[0].colour is unknown") {
		t.Errorf("readiness: got %q, want the line named", got)
	}
	_, err := b.registry.Bearer(t.Context(), token, "", nil)
	wantProblem(t, "bearer", err, fault.ProviderUntrusted, "trust file")
	wantProblem(t, "session", b.registry.Admit(t.Context(), d), fault.ProviderUntrusted, "trust file")
	if got := b.registry.Providers(); len(got) != 0 || !b.registry.Enabled() {
		t.Errorf("got %d providers, enabled %v; want none to sign in at, but configured", len(got), b.registry.Enabled())
	}
	b.write(b.Trust("idp-a", viewers))
	b.awaitCheck(service.OK)
	if _, err := b.registry.Bearer(t.Context(), token, "", nil); err != nil {
		t.Errorf("mended: got %v, want the token accepted", err)
	}
}

func TestAdmitHoldsAnOpenSessionAgainstTheTrustFileOfNow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		file  func(b *bundle) string
		kind  problem.Kind
		words string
	}{
		{"provider removed", func(*bundle) string { return "  []\n" }, fault.ProviderUntrusted, "not trusted any more"},
		{"provider is another of that name", func(b *bundle) string { return idptest.New(b.t).Trust("idp-a", "") }, fault.ProviderUntrusted, "not the one"},
		{"denied", func(b *bundle) string { return b.Trust("idp-a", "  deny: ['1001']\n") }, fault.InvalidToken, "disabled"},
		{"no rule", func(b *bundle) string { return b.Trust("idp-a", "  role_rules: []\n") }, fault.InvalidToken, "any more"},
		{"lesser role", func(b *bundle) string {
			return b.Trust("idp-a", "  role_rules: [{value: platform-admin, role: viewer}]\n")
		}, fault.InvalidToken, "lesser role"},
		{"other tenant", func(b *bundle) string { return b.Trust("idp-a", "  tenant: physics\n") }, fault.InvalidToken, "tenant"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, "")
			d := session.Data{
				Provider: "idp-a", Subject: "idp-a:1001", Tenant: "idp-a", Role: caller.Admin,
				Claims: map[string]any{"sub": "1001", "iss": b.URL, "groups": []any{"platform-admin"}},
			}
			if err := b.registry.Admit(t.Context(), d); err != nil {
				t.Fatalf("before: got %v, want it admitted", err)
			}
			b.write(test.file(b))
			b.start()
			wantProblem(t, test.name, b.registry.Admit(t.Context(), d), test.kind, test.words)
		})
	}
}

func TestStepUpIsWhatTheProviderDemands(t *testing.T) {
	t.Parallel()
	b := setup(t, "  step_up: {acr_values: [gold], max_age_s: 60}\n")
	acr, age, url, required := b.registry.StepUp("idp-a")
	if !required || len(acr) != 1 || acr[0] != "gold" || age != time.Minute || url != "/api/auth/sso/idp-a/login?step_up=true" {
		t.Errorf("got %q %s %q %v", acr, age, url, required)
	}
	if _, age, _, required := b.registry.StepUp("gone"); !required || age != 0 {
		t.Errorf("a provider that is gone: got %s, %v; want what nobody can meet", age, required)
	}
	if _, _, _, required := setup(t, "").registry.StepUp("idp-a"); required {
		t.Error("a provider without step_up: got required, want not")
	}
}

func TestWithoutATrustFileNobodyIsTrusted(t *testing.T) {
	t.Parallel()
	r, err := idp.New(idp.Config{Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if r.Enabled() || len(r.Providers()) > 0 || r.Check(t.Context()).Status != service.OK {
		t.Errorf("got enabled %v, %d providers, %v; want nothing and ready", r.Enabled(), len(r.Providers()), r.Check(t.Context()))
	}
	_, err = r.Bearer(t.Context(), "x", "", nil)
	wantProblem(t, "bearer", err, fault.InvalidToken, "neither")
	if _, err := idp.New(idp.Config{}); err == nil {
		t.Error("without parts: got no error, want a refusal")
	}
}

func TestBasisIsOfTheTrustFileThatIsBelieved(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers)
	b.watch()
	first := b.registry.Basis()
	if first == "" {
		t.Error("got no mark of a file without faults")
	}
	b.write(b.Trust("idp-a", viewers+"  colour: red\n"))
	b.awaitCheck(service.Fail)
	if got := b.registry.Basis(); got != "" {
		t.Errorf("got the mark %s of a file with a fault, want none", got)
	}
	b.write(b.Trust("idp-a", viewers+"  deny: [\"1001\"]\n"))
	b.awaitCheck(service.OK)
	denied := b.registry.Basis()
	if denied == first || denied == "" {
		t.Errorf("got the mark %q after a subject was denied, want another than %q", denied, first)
	}
}
