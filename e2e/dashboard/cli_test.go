//go:build e2e

package dashboard_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// publicClient is the issuer's state for command lines: refresh tokens, each usable once, and devices.
type publicClient struct {
	mu      sync.Mutex        // guards the fields below
	refresh map[string]string // subject by token
	devices map[string]string // subject by code; empty until the person has entered the code
	renewed int
}

func (c *publicClient) startDevice(w http.ResponseWriter, r *http.Request) {
	code := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.devices == nil {
		c.devices = map[string]string{}
	}
	c.devices[code] = ""
	answerJSON(w, map[string]any{"device_code": code, "user_code": code[:8], "verification_uri": "http://" + r.Host + "/enter", "expires_in": 60, "interval": 1})
}

// enter is the person's entry of a device code.
func (c *publicClient) enter(userCode, subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for code := range c.devices {
		if strings.HasPrefix(code, userCode) {
			c.devices[code] = subject
		}
	}
}

func (c *publicClient) revoke(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.refresh, r.PostFormValue("token"))
}

// exchangePublic gives a token to a client that proves that it began the sign-in, without a secret.
func (i *issuer) exchangePublic(w http.ResponseWriter, r *http.Request) {
	i.cli.mu.Lock()
	defer i.cli.mu.Unlock()
	subject, failure := "", "invalid_grant"
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		i.mu.Lock()
		asked := i.codes[r.PostFormValue("code")]
		delete(i.codes, r.PostFormValue("code"))
		i.mu.Unlock()
		challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(challenge[:]) && asked.Get("redirect_uri") == r.PostFormValue("redirect_uri") {
			subject = asked.Get("as")
		}
	case "refresh_token":
		subject = i.cli.refresh[r.PostFormValue("refresh_token")]
		delete(i.cli.refresh, r.PostFormValue("refresh_token"))
		i.cli.renewed++
	case "urn:ietf:params:oauth:grant-type:device_code":
		if subject = i.cli.devices[r.PostFormValue("device_code")]; subject == "" {
			failure = "authorization_pending"
		}
	}
	if subject == "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":%q}`, failure)
		return
	}
	if i.cli.refresh == nil {
		i.cli.refresh = map[string]string{}
	}
	next := rand.Text()
	i.cli.refresh[next] = subject
	group := "platform-admin"
	if subject == "stranger" {
		group = "nobody"
	}
	answerJSON(w, map[string]any{"access_token": i.accessToken(r.PathValue("realm"), subject, group, map[string]any{"jti": next}), "token_type": "Bearer", "expires_in": 3600, "refresh_token": next})
}

// shell is a home directory in which mlp runs.
type shell struct {
	t    *testing.T
	w    *world
	home string
}

func (s *shell) config() string { return filepath.Join(s.home, ".config", "platform", "config.toml") }

func (s *shell) command(line ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), harness.Bin(s.t, "mlp"), line...)
	cmd.Env = []string{"HOME=" + s.home, "PATH=/nonexistent", "DASHBOARD_URL=" + s.w.url}
	return cmd
}

// mlp runs a command and expects an exit code and a text in its output.
func (s *shell) mlp(code int, want string, line ...string) string {
	s.t.Helper()
	out, err := s.command(line...).CombinedOutput()
	got := 0
	if exit, ok := err.(*exec.ExitError); ok {
		got = exit.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	if got != code || !strings.Contains(string(out), want) {
		s.t.Fatalf("mlp %s: got exit %d and\n%s\nwant %d and %q", strings.Join(line, " "), got, out, code, want)
	}
	return string(out)
}

// signIn runs a sign-in up to the line that requires a person, calls the person's action, and expects an exit code and
// a text.
func (s *shell) signIn(act func(said string), code int, want string, line ...string) {
	s.t.Helper()
	cmd := s.command(line...)
	said, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	var out, talk bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		act(lines.Text())
		fmt.Fprintln(&talk, lines.Text())
	}
	err = cmd.Wait()
	talk.WriteString(out.String())
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(talk.String(), want) {
		s.t.Fatalf("mlp %s: got exit %d (%v) and\n%s\nwant %d and %q", strings.Join(line, " "), got, err, talk.String(), code, want)
	}
}

var printedAddress = regexp.MustCompile(`https?://\S+`)

// browse opens the printed address in a browser that is signed in at the issuer.
func (s *shell) browse(subject string) func(string) {
	return func(said string) {
		s.t.Helper()
		address := printedAddress.FindString(said)
		if !strings.Contains(address, "/authorize?") {
			return
		}
		// A page that guesses the address gets nothing, and disturbs nothing.
		u, err := url.Parse(address)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, target := range []struct {
			url  string
			want int
		}{{u.Query().Get("redirect_uri") + "?code=x&state=guessed", 400}, {address + "&as=" + subject, 200}} {
			resp, err := http.Get(target.url)
			if err != nil {
				s.t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != target.want {
				s.t.Errorf("%s: got %d, want %d", target.url, resp.StatusCode, target.want)
			}
		}
	}
}

// expire makes the stored token appear expired.
func (s *shell) expire() {
	s.t.Helper()
	data, err := os.ReadFile(s.config())
	if err != nil {
		s.t.Fatal(err)
	}
	aged := regexp.MustCompile(`expires_at = \S+`).ReplaceAll(data, []byte("expires_at = 2020-01-01T00:00:00Z"))
	if bytes.Equal(aged, data) {
		s.t.Fatalf("got no expiry in the file, want one:\n%s", data)
	}
	if err := os.WriteFile(s.config(), aged, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// mlp signs in at the providers of the dashboard's trust file, in two ways, and renews its tokens.
func TestCommandLineSignsIn(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	s := &shell{t, w, t.TempDir()}
	s.mlp(2, "name a provider with --provider: campus, other", "auth", "login", "--device")
	s.mlp(1, "trusts no provider nowhere; it trusts campus, other", "auth", "login", "--provider", "nowhere")
	s.mlp(2, "does not go with --output json", "--json", "auth", "login", "--provider", "campus")
	s.signIn(s.browse("stranger"), 1, "the dashboard does not admit you", "auth", "login", "--provider", "campus", "--no-browser")
	if _, err := os.Stat(s.config()); !os.IsNotExist(err) {
		t.Errorf("got %v, want nothing stored of who is not admitted", err)
	}

	s.signIn(s.browse("frank"), 0, "signed in at campus as campus:frank (admin)", "auth", "login", "--provider", "campus", "--no-browser")
	if info, err := os.Stat(s.config()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v (%v), want the tokens readable by their owner alone", info.Mode(), err)
	}
	s.mlp(0, "campus:frank", "auth", "whoami")
	if shown := s.mlp(0, "***", "config", "show"); strings.Contains(shown, "refresh") || strings.Contains(shown, "eyJ") {
		t.Errorf("got %s, want no token shown", shown)
	}

	// Expired: renewed once despite concurrent commands, and the new refresh token is stored.
	for range 2 {
		s.expire()
		before := w.issuer.renewals()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if out, err := s.command("auth", "whoami").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("campus:frank")) {
					t.Errorf("got %v and %s, want to be campus:frank", err, out)
				}
			})
		}
		all.Wait()
		if got := w.issuer.renewals() - before; got != 1 {
			t.Errorf("got %d renewals, want 1", got)
		}
	}
	// The provider has ended the sign-in.
	s.expire()
	w.issuer.forgetSignIns("frank")
	s.mlp(1, "hint: sign in again: "+harness.Bin(t, "mlp")+" auth login --provider campus", "alerts", "list") // it is not in PATH
	s.mlp(0, "logged out", "auth", "logout")
	if data, err := os.ReadFile(s.config()); err != nil || bytes.Contains(data, []byte("token")) {
		t.Errorf("got %s (%v), want no token left", data, err)
	}

	// By a code on another device, into a new context.
	s.mlp(0, "", "--context", "lab", "config", "set", "dashboard", w.url)
	device := regexp.MustCompile(`enter the code (\S+)`)
	s.signIn(func(said string) {
		if m := device.FindStringSubmatch(said); m != nil {
			w.issuer.cli.enter(m[1], "grace")
		}
	}, 0, "signed in at other as other:grace (admin)", "--context", "lab", "auth", "login", "--device", "--provider", "other")
	s.mlp(0, "other:grace", "--context", "lab", "auth", "whoami")
	s.mlp(1, "mlp auth login", "auth", "whoami")
}

func (i *issuer) renewals() int {
	i.cli.mu.Lock()
	defer i.cli.mu.Unlock()
	return i.cli.renewed
}

func (i *issuer) forgetSignIns(subject string) {
	i.cli.mu.Lock()
	defer i.cli.mu.Unlock()
	for token, of := range i.cli.refresh {
		if of == subject {
			delete(i.cli.refresh, token)
		}
	}
}
