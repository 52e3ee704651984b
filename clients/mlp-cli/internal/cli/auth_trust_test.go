package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTrustFileIsValidated(t *testing.T) {
	t.Parallel()
	issuer := ""
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"http://127.0.0.1/keys"}`, issuer+"/good")
		case "/other/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer":"https://elsewhere.example","jwks_uri":"https://elsewhere.example/keys"}`)
		case "/page/.well-known/openid-configuration":
			fmt.Fprint(w, "<html>")
		case "/moved/.well-known/openid-configuration":
			http.Redirect(w, r, "/good/.well-known/openid-configuration", http.StatusFound)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(provider.Close)
	issuer = provider.URL
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "trust.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sound := func(path string) string {
		return file("version: 1\nproviders:\n- name: idp-a\n  issuer: " + issuer + path + "\n  audience: platform\n")
	}
	vars := map[string]string{"HOME": t.TempDir()}
	for name, tc := range map[string]struct {
		argv []string
		code int
		want string
	}{
		"sound":                {[]string{"--file", sound("/good")}, 0, "idp-a"},
		"its discovery":        {[]string{"--file", sound("/good"), "--check-discovery"}, 0, "ok"},
		"another issuer":       {[]string{"--file", sound("/other"), "--check-discovery"}, 1, "elsewhere.example"},
		"a page":               {[]string{"--file", sound("/page"), "--check-discovery"}, 1, "no JSON object"},
		"a redirect":           {[]string{"--file", sound("/moved"), "--check-discovery"}, 1, "302"},
		"nothing there":        {[]string{"--file", sound("/none"), "--check-discovery"}, 1, "404"},
		"a fault in its line":  {[]string{"--file", file("version: 1\nproviders:\n- name: idp-a\n  issuer: nowhere\n")}, 1, "trust.yaml:4"},
		"absent":               {[]string{"--file", filepath.Join(t.TempDir(), "none")}, 1, "cannot be read"},
		"discovery of nothing": {[]string{"--check-discovery"}, 2, "needs --file"},
	} {
		r := runMLP(t, vars, "", append([]string{"auth", "validate"}, tc.argv...)...)
		if r.code != tc.code || !strings.Contains(r.out+r.err, tc.want) {
			t.Errorf("%s: got %+v, want exit %d and %q", name, r, tc.code, tc.want)
		}
	}
}

// A bundle is signed line by line: on its way to a pipe no byte of it changes.
func TestExportedLedgerIsExact(t *testing.T) {
	t.Parallel()
	bundle := "{\"actor\":\"a\u202eb\u200b\u0085\"}\n{\"kind\":\"trailer\",\"count\":1}\n"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/audit/export" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		fmt.Fprint(w, bundle)
	}))
	t.Cleanup(srv.Close)
	r := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL, "CONTROL_PLANE_TOKEN": "t"}, "", "audit", "export")
	if r.code != 0 || r.out != bundle {
		t.Errorf("got %+q, exit %d, %s; want %+q", r.out, r.code, r.err, bundle)
	}
}

// The colours of a patch are among those that the terminal's writer lets pass.
func TestPatchIsColoured(t *testing.T) {
	var out, errOut strings.Builder
	env := (&Env{Out: &out, Err: &errOut, OutTTY: true, ErrTTY: true, Getenv: func(string) string { return "" }}).cleanStreams()
	var b strings.Builder
	env.writePatch(&b, "@@ -1 +1,2 @@\n a\n-b\n+c\x1b[2J")
	if _, err := fmt.Fprint(env.Out, b.String()); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\x1b[") < 4 || strings.Contains(got, "\x1b[2J") || strings.Contains(got, `\x1b[3`) || !strings.Contains(got, `c\x1b[2J`) {
		t.Errorf("got %q, want coloured lines, and the escape of the patch shown", got)
	}
	if env.bars != &errOut {
		t.Errorf("bars are written to %T, want the terminal itself", env.bars)
	}
}
