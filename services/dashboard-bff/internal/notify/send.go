package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/outbound"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
)

// sendTimeout limits one attempt.
const sendTimeout = 10 * time.Second

// target is where a channel sends, opened.
type target struct {
	id         uuid.UUID
	kind       Kind
	recipients []string
	secrets    secrets
}

// secrets are sealed in one piece: the address of a chat's webhook is a credential as much as a signing secret is.
type secrets struct {
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"` // whsec_<base64>, of a webhook
}

// secretPrefix marks a signing secret, as Standard Webhooks has it.
const secretPrefix = "whsec_"

func newSecret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(raw)
}

// sealedName binds what is sealed to its channel.
func sealedName(id uuid.UUID) string { return "notification channel " + id.String() }

func seal(keys *sealing.Keys, id uuid.UUID, s secrets) (string, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	return keys.Seal(sealedName(id), string(raw))
}

func open(keys *sealing.Keys, id uuid.UUID, sealed string) (secrets, error) {
	var s secrets
	if sealed == "" {
		return s, nil
	}
	raw, err := keys.Open(sealedName(id), sealed)
	if err != nil {
		return s, fmt.Errorf("the stored address cannot be opened; add the key that sealed it to DASHBOARD_SECRET_KEY, or enter the address again: %w", err)
	}
	return s, json.Unmarshal([]byte(raw), &s)
}

// newClient posts to checked addresses, follows no redirect, which could lead elsewhere, and knows no environment's
// proxy, which would resolve names out of the guard's sight.
func newClient() *http.Client {
	g := &outbound.Guard{Resolver: net.DefaultResolver, Dialer: net.Dialer{Timeout: 5 * time.Second}}
	return &http.Client{
		Transport:     &http.Transport{DialContext: g.Dial, TLSHandshakeTimeout: 5 * time.Second, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send delivers a message once. id is that of the delivery, the same at every attempt. The error is for the channel's
// page: it holds no address and no secret.
func (n *Notifier) send(ctx context.Context, to target, id uuid.UUID, m message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	switch to.kind {
	case Webhook:
		body, err := json.Marshal(m)
		if err != nil {
			return err
		}
		at := strconv.FormatInt(time.Now().Unix(), 10) // of the attempt: receivers refuse old ones
		signature, err := sign(to.secrets.Secret, id.String(), at, body)
		if err != nil {
			return err
		}
		return n.post(ctx, to.secrets.URL, body, http.Header{"Webhook-Id": {id.String()}, "Webhook-Timestamp": {at}, "Webhook-Signature": {signature}})
	case Slack:
		body, err := json.Marshal(slackBody(m))
		if err != nil {
			return err
		}
		return n.post(ctx, to.secrets.URL, body, nil)
	default:
		return n.mail(ctx, to.recipients, id, m)
	}
}

// sign returns the header webhook-signature of Standard Webhooks.
func sign(secret, id, at string, body []byte) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(key) == 0 {
		return "", errors.New("the stored signing secret is damaged; delete the channel and add it again")
	}
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, id+"."+at+".")
	_, _ = mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type slackBlock struct {
	Type string    `json:"type"`
	Text slackText `json:"text"`
}

type slackMessage struct {
	Text   string       `json:"text"` // for notifications, and for chats without blocks
	Blocks []slackBlock `json:"blocks"`
}

// slackEscape keeps a title text: < begins a link or a mention of everybody.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func slackBody(m message) slackMessage {
	title := slackEscape.Replace(m.Data.Title)
	return slackMessage{
		Text:   title + " " + m.Data.URL,
		Blocks: []slackBlock{{"section", slackText{"mrkdwn", title + "\n<" + slackEscape.Replace(m.Data.URL) + "|Open in the dashboard>"}}},
	}
}

// post sends JSON. Any 2xx is a success.
func (n *Notifier) post(ctx context.Context, address string, body []byte, header http.Header) error {
	u, msg := outbound.ParseURL(address)
	if msg != "" {
		return errors.New("the stored address " + msg)
	}
	if !n.hosts.Allow(u) {
		return errors.New(notAllowed)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the stored address is no URL")
	}
	for name, v := range header {
		req.Header[name] = v
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "mlp-platform-notifications/1")
	res, err := n.client.Do(req)
	if err != nil {
		return explainPost(err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return fmt.Errorf("the receiver answered with a redirect (%d), which is not followed; enter the final address", res.StatusCode)
	case res.StatusCode < 200 || res.StatusCode >= 300:
		return fmt.Errorf("the receiver answered %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	}
	return nil
}

// explainPost leaves out the address, which is a credential; [url.Error] holds it.
func explainPost(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var name *net.DNSError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the receiver gave no answer within %s", sendTimeout)
	case errors.Is(err, outbound.ErrForbiddenAddress):
		return errors.New("the host leads to an address that is never connected to, such as link-local, metadata or loopback")
	case errors.As(err, &name):
		return errors.New("the host's name is unknown to this machine's name servers")
	case errors.As(err, &unknown):
		return errors.New("the receiver's certificate is signed by an unknown authority")
	}
	return fmt.Errorf("the receiver cannot be reached: %w", err)
}
