package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/oauth2"

	"github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/config"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/service/listener"
)

// signInLimit is how long a person may take to sign in with a browser.
const signInLimit = 5 * time.Minute

func authLoginCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "login", Usage: "sign in at the dashboard by its password or at an identity provider, and store the token", Flags: []cli.Flag{
		&cli.StringFlag{Name: "provider", Usage: "sign in at this identity provider with a browser"},
		&cli.BoolFlag{Name: "device", Usage: "sign in with the browser of another device, which is given a code"},
		&cli.BoolFlag{Name: "no-browser", Usage: "only print the address to open"},
	}, Action: func(c *cli.Context) error {
		if _, err := readArguments(c); err != nil {
			return err
		}
		o := signInOptions{provider: c.String("provider"), device: c.Bool("device"), noBrowser: c.Bool("no-browser")}
		if o.provider == "" && !o.device {
			return authLogin(c.Context, env)
		}
		if env.Format.Structured() {
			return fault.Usage("single sign-on shows an address to open; it does not go with --output %s", env.Format)
		}
		return signIn(c.Context, env, o)
	}}
}

type signInOptions struct {
	provider          string
	device, noBrowser bool
}

// signIn gets a token from an identity provider that the dashboard trusts, as a public client: by the code flow with PKCE
// on a loopback address (RFC 8252), or by the device flow (RFC 8628).
func signIn(ctx context.Context, env *Env, o signInOptions) error {
	r, f, err := env.tokenPlace()
	if err != nil {
		return err
	}
	p, err := env.findProvider(ctx, r, o.provider)
	if err != nil {
		return err
	}
	idp, err := env.discover(ctx, p.Cli.Issuer)
	if err != nil {
		return err
	}
	client := idp.client(p.Cli.ClientId, p.Cli.Scopes)
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, env.HTTP), signInLimit)
	defer cancel()
	var token *oauth2.Token
	if o.device {
		token, err = env.signInByDevice(ctx, client)
	} else {
		token, err = env.signInByBrowser(ctx, client, idp, o.noBrowser)
	}
	if err != nil {
		return signInFault(ctx, p.Name, err)
	}
	me, err := env.identify(ctx, r, token.AccessToken)
	if err != nil {
		return err
	}
	session := config.Session{Provider: p.Name, Issuer: p.Cli.Issuer, ClientID: p.Cli.ClientId, RefreshToken: token.RefreshToken, ExpiresAt: token.Expiry.UTC()}
	err = env.storeToken(ctx, f, func(f *config.File, _ config.Key) error { return f.SetSession(r.Context, token.AccessToken, session) })
	if err != nil {
		return err
	}
	until := "until the provider ends it"
	if token.RefreshToken == "" {
		until = "until " + token.Expiry.UTC().Format("2006-01-02 15:04:05Z")
	}
	return env.done(nil, "signed in at %s as %s (%s) %s; the token is in %s", p.Name, me.Sub, me.Role, until, f.Location())
}

// findProvider asks the dashboard which providers it trusts; its trust file is the only source of issuer and client.
func (e *Env) findProvider(ctx context.Context, r *config.Resolved, name string) (dashboard.Provider, error) {
	none := dashboard.Provider{}
	s := e.remote(r, "dashboard", "dashboard", "") // the route is public, and an old token would be refused
	client, err := dashboard.NewClient(s.url, wire.WithHTTPClient(s))
	if err != nil {
		return none, err
	}
	list, err := decode[dashboard.Providers](client.ListProviders(ctx))
	if err != nil {
		return none, err
	}
	var usable []dashboard.Provider
	var names []string
	for _, p := range list.Providers {
		switch {
		case p.Cli != nil:
			usable, names = append(usable, p), append(names, p.Name)
		case p.Name == name:
			return none, fault.New("no_cli_client", "provider %s has no client for the command line", name).WithHint("the trust file of the dashboard needs clients.cli there")
		}
	}
	for _, p := range usable {
		if p.Name == name || name == "" && len(usable) == 1 {
			return p, nil
		}
	}
	switch {
	case len(usable) == 0:
		return none, fault.New("no_provider", "the dashboard has no identity provider for the command line").WithHint("sign in with a password: mlp auth login")
	case name == "":
		return none, fault.Usage("name a provider with --provider: %s", strings.Join(names, ", "))
	}
	return none, fault.New("unknown_provider", "the dashboard trusts no provider %s; it trusts %s", name, strings.Join(names, ", "))
}

// identify asks the dashboard who the owner of a token is; a token that it refuses is not stored.
func (e *Env) identify(ctx context.Context, r *config.Resolved, token string) (dashboard.Identity, error) {
	s := e.remote(r, "dashboard", "dashboard", "")
	s.token = token
	client, err := dashboard.NewClient(s.url, wire.WithHTTPClient(s))
	if err != nil {
		return dashboard.Identity{}, err
	}
	me, err := decode[dashboard.Identity](client.Me(ctx))
	if err != nil && (fault.From(err).Status == http.StatusUnauthorized || fault.From(err).Status == http.StatusForbidden) {
		f := fault.From(err)
		return me, f.WithHint("you signed in, but the dashboard does not admit you: ask the operator who maintains its trust file")
	}
	return me, err
}

func (e *Env) signInByDevice(ctx context.Context, client *oauth2.Config) (*oauth2.Token, error) {
	if client.Endpoint.DeviceAuthURL == "" {
		return nil, fault.New("no_device_flow", "the provider offers no sign-in with another device").WithHint("leave --device out")
	}
	verifier := oauth2.GenerateVerifier()
	code, err := client.DeviceAuth(ctx, oauth2.S256ChallengeOption(verifier))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(e.Err, "Open %s\nand enter the code %s\n", code.VerificationURI, code.UserCode)
	return client.DeviceAccessToken(ctx, code, oauth2.VerifierOption(verifier))
}

// signInByBrowser sends the person's browser to the provider and takes the code that comes back to this machine.
func (e *Env) signInByBrowser(ctx context.Context, client *oauth2.Config, idp identityProvider, noBrowser bool) (*oauth2.Token, error) {
	port, err := listener.Listen("127.0.0.1:0", "mlp", 0)
	if err != nil {
		return nil, fault.New("no_loopback", "cannot listen for the browser on this machine: %v", err).WithHint("sign in with another device: mlp auth login --device")
	}
	client.RedirectURL = "http://" + port.Addr().String() + "/callback"
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	answers := make(chan browserAnswer, 1)
	server := listener.Server(takeCode(state, answers), slog.New(slog.DiscardHandler), slog.LevelDebug)
	go func() { _ = server.Serve(port) }() // ends with endServer
	defer endServer(ctx, server)
	address := client.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier))
	fmt.Fprintf(e.Err, "Sign in with your browser: %s\n", address)
	if !noBrowser && e.ErrTTY {
		openBrowser(ctx, address)
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-answers:
		switch {
		case idp.SendsIssuer && a.issuer != idp.Issuer, a.issuer != "" && a.issuer != idp.Issuer: // RFC 9207
			return nil, fault.New("login_rejected", "the answer comes from another issuer than was asked")
		case a.failure != "":
			return nil, fault.New("idp_"+a.failure, "the provider refused: %s", strings.TrimSpace(a.failure+" "+a.why))
		}
		return client.Exchange(ctx, a.code, oauth2.VerifierOption(verifier))
	}
}

// endServer lets the browser read the answer to its last request before it closes the connections.
func endServer(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		server.Close() // a browser may keep a connection open without sending a request
	}
}

// browserAnswer holds the parameters that the provider sends back through the browser.
type browserAnswer struct{ code, issuer, failure, why string }

// takeCode accepts the first answer with the right state; others, which any page could send, are refused and
// forgotten.
func takeCode(state string, answers chan<- browserAnswer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			http.Error(w, "This answer is not the one that mlp waits for.", http.StatusBadRequest)
			return
		}
		select {
		case answers <- browserAnswer{q.Get("code"), q.Get("iss"), q.Get("error"), q.Get("error_description")}:
		default: // the same answer again
		}
		fmt.Fprintln(w, "mlp has the provider's answer. You can close this window.")
	})
	return mux
}

func openBrowser(ctx context.Context, address string) {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	_ = exec.CommandContext(context.WithoutCancel(ctx), program, address).Start() // the address is printed anyway
}

// signInFault converts an error from the provider, or its absence, to a fault.
func signInFault(ctx context.Context, provider string, err error) error {
	var known *fault.Error
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.New("sign_in_timeout", "no one signed in within %s; nothing is stored", signInLimit)
	case ctx.Err() != nil:
		return fault.New("interrupted", "interrupted; nothing is stored")
	case errors.As(err, &refused):
		return fault.New("idp_"+cmpOr(refused.ErrorCode, "error"), "provider %s refused: %s", provider, cmpOr(refused.ErrorDescription, cmpOr(refused.ErrorCode, refused.Response.Status)))
	}
	f := fault.New("idp_unreachable", "provider %s cannot be reached", provider)
	f.Cause = err
	return f
}

// scopesWith adds the scope by which a provider gives a refresh token, if it has one.
func scopesWith(asked, supported []string) []string {
	const offline = "offline_access"
	if slices.Contains(supported, offline) && !slices.Contains(asked, offline) {
		return append(slices.Clone(asked), offline)
	}
	return asked
}
