// Package keycloak runs a real identity provider and signs people in through its pages.
package keycloak

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1" // the hash of authenticator apps (RFC 6238)
	"encoding/binary"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// The registration of the dashboard in realm.json.
const (
	ClientID     = "dashboard"
	ClientSecret = "secret-of-the-e2e-client"
)

// otpSecret is the secret of alice's one-time codes.
const otpSecret = "ABCDEFGHIJKLMNOPQRST"

// OTPSecrets are those of the people that a browser signs in, by name: a code is good once, so each has their own.
var OTPSecrets = map[string]string{"erin": "ERINERINERINERINERIN", "frank": "FRANKFRANKFRANKFRANK"}

// Server is a running Keycloak with the realm of realm.json: alice, erin and frank (admins, with one-time codes), bob
// (a viewer), carol (a viewer of 200 groups) and the user "nobody", whose group has the admins' name below another.
type Server struct {
	Origin string
	Issuer string

	log bytes.Buffer // read only after the process has ended
}

// startTimeout is generous: an idle machine needs 20 s, two busy cores ten times that.
const startTimeout = 8 * time.Minute

// Start runs Keycloak on addr for a dashboard at dashboardURL, until the test ends.
func Start(t *testing.T, addr, dashboardURL string) *Server {
	t.Helper()
	root := harness.Root(t)
	realm, err := os.ReadFile(filepath.Join(root, "e2e", "keycloak", "realm.json"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "realm.json")
	if err := os.WriteFile(file, bytes.ReplaceAll(realm, []byte("@DASHBOARD_URL@"), []byte(dashboardURL)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(addr, ":")
	// Another host than the dashboard's, so that for a browser it is another site: Strict cookies are not sent with its
	// redirects.
	s := &Server{Origin: "http://localhost:" + port}
	s.Issuer = s.Origin + "/realms/platform"
	cmd := exec.Command("sh", filepath.Join(root, "scripts", "keycloak.sh"), "start", port, file)
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the script becomes kc.sh, which starts Java
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its state is in memory
		<-ended
		if t.Failed() {
			t.Logf("Keycloak said:\n%s", s.log.String())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	for !s.answers(ctx) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("Keycloak ended: %v\n%s", err, s.log.String())
		case <-ctx.Done():
			t.Fatalf("Keycloak does not answer at %s within %s", s.Issuer, startTimeout)
		case <-time.After(250 * time.Millisecond):
		}
	}
	return s
}

func (s *Server) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Issuer+"/.well-known/openid-configuration", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Browser is one person's browser: it keeps cookies and fills in the provider's forms.
type Browser struct {
	Forms []string // the forms that the provider showed: password, code
	// Address is the browser's address according to the dashboard's proxy; limits count by it.
	Address string

	t         *testing.T
	dashboard *url.URL
	client    *http.Client
}

// NewBrowser returns a browser without cookies.
func NewBrowser(t *testing.T, dashboardURL string) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(dashboardURL)
	if err != nil {
		t.Fatal(err)
	}
	return &Browser{t: t, dashboard: u, client: &http.Client{
		Jar: jar, Timeout: 30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Page is a fully read answer.
type Page struct {
	Status   int
	Header   http.Header
	Body     string
	Location *url.URL // of a redirect; nil
}

// Do sends a request with the browser's cookies. form is posted if it is not nil.
func (b *Browser) Do(method, address string, form url.Values, header ...string) *Page {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, address, body)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,application/json")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if b.Address != "" && req.URL.Host == b.dashboard.Host {
		req.Header.Set("X-Forwarded-For", b.Address)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil {
		b.t.Fatal(err)
	}
	p := &Page{Status: resp.StatusCode, Header: resp.Header, Body: string(raw)}
	if to, err := resp.Location(); err == nil {
		p.Location = to
	}
	return p
}

// Cookies returns the cookies that the browser sends to the dashboard.
func (b *Browser) Cookies() []*http.Cookie { return b.client.Jar.Cookies(b.dashboard) }

var formAction = regexp.MustCompile(`<form[^>]*\saction="([^"]+)"`)

// maxSteps limits one sign-in: two forms, and redirects between.
const maxSteps = 12

// Walk follows redirects from address and fills in forms as the user, until the provider redirects to the dashboard's
// callback, whose address it returns.
func (b *Browser) Walk(address, user string) string {
	b.t.Helper()
	p := b.Do(http.MethodGet, address, nil)
	for range maxSteps {
		if p.Location != nil {
			if p.Location.Host == b.dashboard.Host {
				return p.Location.String()
			}
			p = b.Do(http.MethodGet, p.Location.String(), nil)
			continue
		}
		action := formAction.FindStringSubmatch(p.Body)
		if p.Status != http.StatusOK || action == nil {
			b.t.Fatalf("the provider answered %d without a form: %.2000s", p.Status, p.Body)
		}
		form := url.Values{}
		switch {
		case strings.Contains(p.Body, `name="otp"`):
			b.Forms = append(b.Forms, "code")
			form.Set("otp", b.nextCode())
		case strings.Contains(p.Body, `name="password"`):
			b.Forms = append(b.Forms, "password")
			form.Set("username", user)
			form.Set("password", "password-of-"+user)
		default:
			b.t.Fatalf("the provider shows a form that is not known: %.2000s", p.Body)
		}
		p = b.Do(http.MethodPost, html.UnescapeString(action[1]), form)
	}
	b.t.Fatalf("the provider showed more than %d forms: %v", maxSteps, b.Forms)
	return ""
}

// usedStep is the period of the last one-time code. A code is valid once, so the next may have to be waited for.
var usedStep int64

const codePeriod = 30

// nextCode returns an unused one-time code of RFC 6238.
func (b *Browser) nextCode() string {
	b.t.Helper()
	if err := awaitStep(b.t.Context(), usedStep+1); err != nil {
		b.t.Fatal(err)
	}
	usedStep = time.Now().Unix() / codePeriod
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(usedStep))
	mac := hmac.New(sha1.New, []byte(otpSecret))
	mac.Write(counter[:])
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0x0f
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[at:])&0x7fffffff)%1_000_000)
}

func awaitStep(ctx context.Context, step int64) error {
	wait := time.Until(time.Unix(step*codePeriod, 0))
	if wait <= 0 {
		return nil
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("no further one-time code in time"), ctx.Err())
	}
}
