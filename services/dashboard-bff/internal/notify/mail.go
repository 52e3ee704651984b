package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/wneessen/go-mail"

	"github.com/mlp-platform/platform/libs/service"
)

// Mail is the operator's mail server. Admins choose recipients only, so no address and no password of it passes through
// the web UI.
type Mail struct {
	// Addr is host:port; empty: there is no mail.
	Addr string
	// TLS is starttls, tls, or none for a server on loopback.
	TLS      string
	User     string
	Password service.Secret
	From     string
	RootCAs  *x509.CertPool // nil: those of the system
}

// mailServer is a Mail that was checked.
type mailServer struct {
	Mail
	host, fromHost string
	port           int
}

// Check reports what is wrong with the settings.
func (m Mail) Check() error {
	_, err := m.parse()
	return err
}

func (m Mail) parse() (mailServer, error) {
	s := mailServer{Mail: m}
	if m.Addr == "" {
		return s, nil
	}
	host, port, err := net.SplitHostPort(m.Addr)
	if err == nil {
		s.port, err = strconv.Atoi(port)
	}
	if err != nil || host == "" {
		return s, errors.New("DASHBOARD_SMTP_ADDR must be host:port")
	}
	s.host = host
	from, err := netmail.ParseAddress(m.From)
	if err != nil {
		return s, errors.New("DASHBOARD_SMTP_FROM must be a mail address; it is required with DASHBOARD_SMTP_ADDR")
	}
	_, s.fromHost, _ = strings.Cut(from.Address, "@")
	switch ip := net.ParseIP(host); {
	case m.TLS != "starttls" && m.TLS != "tls" && m.TLS != "none":
		return s, fmt.Errorf("DASHBOARD_SMTP_TLS is %q; it must be starttls, tls or none", m.TLS)
	case m.TLS == "none" && host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return s, errors.New("DASHBOARD_SMTP_TLS=none is allowed for a server on loopback only; use starttls or tls")
	case (m.User == "") != (m.Password == ""):
		return s, errors.New("DASHBOARD_SMTP_USER and DASHBOARD_SMTP_PASSWORD must be set together")
	}
	return s, nil
}

// mail sends one mail to all recipients. The Message-ID is that of the delivery, so that a mail server or a reader can
// drop a repeat.
func (n *Notifier) mail(ctx context.Context, recipients []string, id uuid.UUID, m message) error {
	server := n.server
	if server.Addr == "" {
		return errors.New(noMail)
	}
	msg := mail.NewMsg()
	if err := errors.Join(msg.From(server.From), msg.To(recipients...)); err != nil {
		return fmt.Errorf("address refused: %w", err)
	}
	msg.SetMessageIDWithValue(id.String() + "@" + server.fromHost)
	msg.SetDateWithValue(m.Timestamp)
	msg.Subject(m.Data.Title)
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(mail.TypeTextPlain, m.Data.Title+"\n\n"+m.Data.URL+"\n")
	options := []mail.Option{
		mail.WithPort(server.port), mail.WithTimeout(sendTimeout),
		mail.WithTLSConfig(&tls.Config{ServerName: server.host, MinVersion: tls.VersionTLS12, RootCAs: server.RootCAs}),
	}
	switch server.TLS {
	case "tls":
		options = append(options, mail.WithSSL())
	case "none":
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if server.User != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(server.User), mail.WithPassword(server.Password.Reveal()))
	}
	client, err := mail.NewClient(server.host, options...)
	if err != nil {
		return fmt.Errorf("mail server: %w", err)
	}
	if err := client.DialAndSendWithContext(ctx, msg); err != nil {
		return fmt.Errorf("the mail server did not take the mail: %w", err)
	}
	return nil
}
