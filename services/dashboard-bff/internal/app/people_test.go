package app_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/app"
)

// TestProcess is a helper: other tests run it in a separate process, as a dashboard, and kill that.
func TestProcess(t *testing.T) {
	if os.Getenv("DASHBOARD_TEST_PROCESS") == "" {
		return
	}
	cfg, err := app.LoadConfig(os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*net.Listener{&cfg.Listener, &cfg.ToolsListener} {
		if *l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	cfg.PublicURL, cfg.ToolsURL = "http://"+cfg.Listener.Addr().String(), "http://"+cfg.ToolsListener.Addr().String()
	if err := app.Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	fmt.Println("at " + cfg.PublicURL)
	t.Error(app.Run(t.Context(), cfg, slog.New(slog.NewJSONHandler(os.Stderr, nil)))) // until the process is killed
}

// killable is a dashboard in a process of its own.
type killable struct {
	*replica
	kill func()
}

// startKillable starts a process; its log is kept.
func startKillable(t *testing.T, environ ...string) killable {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestProcess$")
	cmd.Env = append(os.Environ(), append([]string{
		"DASHBOARD_TEST_PROCESS=yes", "DASHBOARD_VIEWER_PASSWORD=viewer-of-the-tests", "DASHBOARD_ADMIN_PASSWORD=admin-of-the-tests",
		"DASHBOARD_JWT_SECRET=a-secret-of-the-tests-with-more-than-32-bytes", "DASHBOARD_SECRET_KEY=MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlBQkNERUY=",
	}, environ...)...)
	k := killable{replica: &replica{t: t, log: &logBuffer{}}}
	cmd.Stderr = k.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k.kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed, which is an error here
	})
	t.Cleanup(k.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "at ") {
		t.Fatalf("the process said %q, %v:\n%s", line, err, k.log)
	}
	k.url = strings.TrimSpace(strings.TrimPrefix(line, "at "))
	k.await("ready", func() bool {
		res, err := client.Get(k.url + "/livez")
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil && res.StatusCode == 200
	})
	return k
}

// await waits until a condition holds.
func (r *replica) await(what string, holds func() bool) {
	r.t.Helper()
	testenv.Eventually(r.t, 30*time.Second, func() error {
		if holds() {
			return nil
		}
		return fmt.Errorf("%s\n%s", what, r.log)
	})
}

// receipt is what a receiver got.
type receipt struct {
	ID, Text string
	Header   http.Header
	Body     []byte
}

// receiver accepts messages while it is open, and refuses them otherwise.
type receiver struct {
	mu     sync.Mutex // guards the rest
	open   bool
	got    []receipt
	before func() // called by an accepted message before it is answered
}

func (r *receiver) setOpen(open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = open
}

func (r *receiver) take(m receipt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		return false
	}
	r.got = append(r.got, m)
	if r.before != nil {
		r.before()
	}
	return true
}

func (r *receiver) all() []receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// texts returns what was received, sorted.
func (r *receiver) texts() []string {
	out := []string{}
	for _, m := range r.all() {
		out = append(out, m.Text)
	}
	slices.Sort(out)
	return out
}

// serveHTTP returns an address at which r receives; text reads a body.
func (r *receiver) serveHTTP(t *testing.T, text func([]byte) string) (url, host string) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if !r.take(receipt{ID: req.Header.Get("webhook-id"), Text: text(body), Header: req.Header, Body: body}) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/hooks/a-secret-path", srv.Listener.Addr().String()
}

// The mail server is a real one: STARTTLS, then PLAIN.
type mailSession struct{ *receiver }

func (s mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "notifier" || password != "password-of-the-mail-server" {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (s mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (s mailSession) Reset()                               {}
func (s mailSession) Logout() error                        { return nil }

func (s mailSession) Data(r io.Reader) error {
	msg, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
	if err != nil {
		return err
	}
	body, err := io.ReadAll(msg.Body)
	if err != nil {
		return err
	}
	if !s.take(receipt{ID: msg.Header.Get("Message-ID"), Text: subject, Header: http.Header(msg.Header), Body: body}) {
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "try again later"}
	}
	return nil
}

// serveMail returns the address of a mail server and the file of the certificate that it shows.
func (r *receiver) serveMail(t *testing.T) (addr, certificate string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate = filepath.Join(t.TempDir(), "mail.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return mailSession{r}, nil }))
	srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(ln) }() // until it is closed
	t.Cleanup(func() { _ = srv.Close() })
	return ln.Addr().String(), certificate
}

// publish sends an event as the control plane's relay does.
func publish(t *testing.T, broker, namespace, name string, data any) {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	id := uuid.Must(uuid.NewV7())
	body, err := json.Marshal(outbox.Envelope{
		SpecVersion: "1.0", ID: id, Source: "/services/control-plane", Type: "platform." + namespace + "." + name, Time: time.Now().UTC(),
		DataContentType: "application/json", DataSchema: "urn:platform:event:" + namespace + "." + name + ":1", Tenant: "default", Data: raw,
	})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(broker)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 20*time.Second, func() error { // the stream is there once the dashboard has connected
		_, err := js.Publish(t.Context(), "platform.default."+namespace+"."+name, body, jetstream.WithMsgID(id.String()))
		return err
	})
}

var (
	waitingApproval = map[string]any{"id": "0199d2a4-0000-7000-8000-000000000001", "kind": "retrain", "model": "JPCP", "commit_sha": "4f2a9c1e", "requested_by": "idp-a:ann"}
	firingAlert     = map[string]any{"id": "drift:JPCP", "source": "drift", "severity": "critical", "title": "JPCP has drifted", "labels": map[string]string{"model": "JPCP"}}
)

// people is a platform with one channel of each kind.
type people struct {
	environ                []string
	broker                 string
	webhook, slack, mail   *receiver
	webhookURL, slackURL   string
	signingSecret, channel string // of the webhook
}

func newPeople(t *testing.T) *people {
	t.Helper()
	p := &people{broker: testenv.NewBroker(t).URL(), webhook: &receiver{}, slack: &receiver{}, mail: &receiver{}}
	var webhookHost, slackHost string
	p.webhookURL, webhookHost = p.webhook.serveHTTP(t, func(body []byte) string {
		var m struct {
			Type string
			Data struct{ Title string }
		}
		if err := json.Unmarshal(body, &m); err != nil {
			return err.Error()
		}
		return m.Type + ": " + m.Data.Title
	})
	p.slackURL, slackHost = p.slack.serveHTTP(t, func(body []byte) string {
		var m struct{ Text string }
		if err := json.Unmarshal(body, &m); err != nil {
			return err.Error()
		}
		text, _, _ := strings.Cut(m.Text, " http://")
		return text
	})
	addr, certificate := p.mail.serveMail(t)
	p.environ = []string{
		"PLATFORM_DATABASE_URL=" + testenv.Postgres(t), "NATS_URL=" + p.broker, "DASHBOARD_NOTIFY_ALLOW=" + webhookHost + "," + slackHost,
		"DASHBOARD_SMTP_ADDR=" + addr, "DASHBOARD_SMTP_FROM=Platform <platform@example.com>", "DASHBOARD_SMTP_USER=notifier",
		"DASHBOARD_SMTP_PASSWORD=password-of-the-mail-server", "SSL_CERT_FILE=" + certificate,
	}
	return p
}

// addChannels adds one channel of each kind for every event.
func (p *people) addChannels(k killable, admin string) {
	k.t.Helper()
	events := `"events": ["approval.requested", "approval.decided", "alert", "mention"]`
	for _, body := range []string{
		`{"name": "hook", "kind": "webhook", "url": "` + p.webhookURL + `", ` + events + `}`,
		`{"name": "chat", "kind": "slack", "url": "` + p.slackURL + `", ` + events + `}`,
		`{"name": "post", "kind": "email", "recipients": ["ops@example.com"], ` + events + `}`,
	} {
		res, raw := k.do("POST", k.url+"/api/v1/notifications/channels", body, "Authorization", admin)
		if res.StatusCode != http.StatusCreated {
			k.t.Fatalf("%s: got %d %s, want 201", body, res.StatusCode, raw)
		}
		var made api.ChannelCreated
		if err := json.Unmarshal([]byte(raw), &made); err != nil {
			k.t.Fatal(err)
		}
		if made.Secret != nil {
			p.signingSecret, p.channel = *made.Secret, made.Channel.Id.String()
		}
	}
}

// channels returns the channels by name.
func channels(k killable, admin string) map[string]api.Channel {
	k.t.Helper()
	var list api.Channels
	k.decode(&list, "GET", "/api/v1/notifications/channels", "", "Authorization", admin)
	out := map[string]api.Channel{}
	for _, c := range list.Channels {
		out[c.Name] = c
	}
	return out
}

func TestApprovalMentionAndAlertReachEveryChannelOnceThroughAKill(t *testing.T) {
	t.Parallel()
	p := newPeople(t)
	before := startKillable(t, p.environ...)
	admin := before.signIn("admin-of-the-tests")
	p.addChannels(before, admin)
	publish(t, p.broker, "approval", "created", waitingApproval)
	publish(t, p.broker, "alert", "firing", firingAlert)
	var comment api.Comment
	before.decode(&comment, "POST", "/api/v1/collab/model/JPCP/comments", `{"body": "@viewer look <b>here</b>"}`, "Authorization", admin)
	before.await("three messages wait before each channel, which says why", func() bool {
		all := channels(before, admin)
		for _, c := range all {
			if c.Waiting != 3 || c.LastError == nil || c.LastSuccessAt != nil {
				return false
			}
		}
		return len(all) == 3
	})
	for name, want := range map[string]string{"hook": "503", "chat": "503", "post": "451"} {
		if got := *channels(before, admin)[name].LastError; !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%s: got the error %q, want the receiver's %s and no address", name, got, want)
		}
	}
	before.kill()
	for _, r := range []*receiver{p.webhook, p.slack, p.mail} {
		r.setOpen(true)
	}
	after := startKillable(t, p.environ...)
	after.await("everything is delivered", func() bool {
		for _, c := range channels(after, admin) {
			if c.Waiting != 0 || c.LastSuccessAt == nil {
				return false
			}
		}
		return true
	})
	titles := []string{"Alert (critical): JPCP has drifted", "admin mentions viewer in a comment on model JPCP", "ann requests the training of JPCP"}
	if diff := cmp.Diff([]string{"alert: " + titles[0], "approval.requested: " + titles[2], "mention: " + titles[1]}, p.webhook.texts()); diff != "" {
		t.Errorf("webhook -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(titles, p.slack.texts()); diff != "" {
		t.Errorf("slack -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(titles, p.mail.texts()); diff != "" {
		t.Errorf("mail -want +got:\n%s", diff)
	}
	for _, m := range p.webhook.all() {
		p.wantSigned(t, m)
	}
	for _, m := range p.mail.all() {
		if m.ID == "" || m.Header.Get("To") != "<ops@example.com>" || !bytes.Contains(m.Body, []byte("http://127.0.0.1:")) {
			t.Errorf("got the mail %v %q, want an id, the recipient and a link", m.Header, m.Body)
		}
	}
	for _, log := range []*logBuffer{before.log, after.log} {
		for _, secret := range []string{"a-secret-path", p.signingSecret, "password-of-the-mail-server"} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log holds the secret %q", secret)
			}
		}
	}
}

// wantSigned verifies a message as a receiver does that follows Standard Webhooks.
func (p *people) wantSigned(t *testing.T, m receipt) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.signingSecret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", m.Header.Get("webhook-id"), m.Header.Get("webhook-timestamp"), m.Body)
	if want, got := "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), m.Header.Get("webhook-signature"); got != want {
		t.Errorf("got the signature %q, want %q", got, want)
	}
}

func TestRepeatAfterAKillCarriesTheSameID(t *testing.T) {
	t.Parallel()
	p := newPeople(t)
	before := startKillable(t, p.environ...)
	admin := before.signIn("admin-of-the-tests")
	p.addChannels(before, admin)
	p.webhook.open, p.slack.open, p.mail.open = true, true, true
	killed := false
	p.webhook.before = func() { // the process dies between the receiver's acceptance and its own record of it
		if !killed {
			killed = true
			before.kill()
		}
	}
	publish(t, p.broker, "approval", "created", waitingApproval)
	before.await("the first delivery, and the kill", func() bool { return len(p.webhook.all()) == 1 })
	after := startKillable(t, p.environ...)
	after.await("the repeat", func() bool { return len(p.webhook.all()) == 2 && channels(after, admin)["hook"].Waiting == 0 })
	got := p.webhook.all()
	if got[0].ID == "" || got[0].ID != got[1].ID || !bytes.Equal(got[0].Body, got[1].Body) {
		t.Errorf("got the ids %q and %q, want one id and one body, by which the receiver drops the repeat", got[0].ID, got[1].ID)
	}
}

func TestInboxOfEachPerson(t *testing.T) {
	t.Parallel()
	p := newPeople(t)
	k := startKillable(t, p.environ...)
	admin, viewer := k.signIn("admin-of-the-tests"), k.signIn("viewer-of-the-tests")
	inbox := func(who, query string) (out api.Inbox) {
		k.decode(&out, "GET", "/api/v1/inbox"+query, "", "Authorization", who)
		return out
	}
	titles := func(i api.Inbox) []string {
		out := []string{}
		for _, n := range i.Items {
			state := "read"
			if n.Unread {
				state = "unread"
			}
			if n.Outcome != nil {
				state = *n.Outcome
			}
			out = append(out, n.Title+" ("+state+")")
		}
		return out
	}
	own := maps.Clone(waitingApproval)
	own["id"], own["model"], own["requested_by"] = "0199d2a4-0000-7000-8000-000000000002", "MACK", "local:admin"
	publish(t, p.broker, "approval", "created", own)
	publish(t, p.broker, "approval", "created", waitingApproval)
	k.await("the approval", func() bool { return inbox(admin, "").Unread == 1 })
	publish(t, p.broker, "alert", "firing", firingAlert)
	k.await("the alert", func() bool { return inbox(viewer, "").Unread == 1 })
	var comment api.Comment
	k.decode(&comment, "POST", "/api/v1/collab/model/JPCP/comments", `{"body": "@Viewer, see @admin"}`, "Authorization", admin)
	k.await("the mention", func() bool { return inbox(viewer, "").Unread == 2 })
	const alerted, asked, mentioned = "JPCP has drifted", "ann requests the training of JPCP", "admin mentions Viewer in a comment on model JPCP"
	want := func(who, query string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, titles(inbox(who, query))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	want(viewer, "", mentioned+" (unread)", alerted+" (unread)") // viewers decide nothing
	want(admin, "", alerted+" (unread)", asked+" (unread)")      // not what the admin requested or wrote
	if got := inbox(viewer, "").Items[0].Path; got != "/models/JPCP?tab=discussion" {
		t.Errorf("the mention leads to %q, want the discussion of the model", got)
	}
	if res, body := k.do("POST", k.url+"/api/v1/inbox/"+inbox(viewer, "").Items[1].Id.String()+"/read", "", "Authorization", viewer); res.StatusCode != 204 {
		t.Fatalf("got %d %s, want 204", res.StatusCode, body)
	}
	want(viewer, "?unread=true", mentioned+" (unread)")
	want(admin, "?unread=true", alerted+" (unread)", asked+" (unread)") // the mark is the viewer's
	if res, body := k.do("POST", k.url+"/api/v1/inbox/"+inbox(viewer, "").Items[0].Id.String()+"/read", "", "Authorization", admin); res.StatusCode != 404 {
		t.Errorf("a notice of somebody else: got %d %s, want 404", res.StatusCode, body)
	}
	decided := maps.Clone(waitingApproval)
	decided["resolved_by"] = "idp-a:bob"
	publish(t, p.broker, "approval", "approved", decided)
	k.await("the decision", func() bool { return inbox(admin, "").Unread == 1 })
	want(admin, "", alerted+" (unread)", asked+" (approved)")
	until := inbox(admin, "").Items[0].At.Format(time.RFC3339Nano)
	if res, body := k.do("POST", k.url+"/api/v1/inbox/read-all", `{"until": "`+until+`"}`, "Authorization", admin); res.StatusCode != 204 {
		t.Fatalf("got %d %s, want 204", res.StatusCode, body)
	}
	want(admin, "", alerted+" (read)", asked+" (approved)")
	publish(t, p.broker, "alert", "resolved", firingAlert)
	if res, body := k.do("DELETE", k.url+"/api/v1/collab/model/JPCP/comments/"+comment.Id.String(), "", "Authorization", admin); res.StatusCode != 204 {
		t.Fatalf("got %d %s, want 204", res.StatusCode, body)
	}
	k.await("the ends of alert and mention", func() bool {
		return slices.Equal(titles(inbox(viewer, "")), []string{mentioned + " (removed)", alerted + " (resolved)"})
	})
}
