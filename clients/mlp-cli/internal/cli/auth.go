package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/config"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/orchestrator"
)

func authCommand(env *Env) *cli.Command {
	leaf := func(name, usage string, run func(context.Context, *Env) error) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			return run(c.Context, env)
		}}
	}
	return &cli.Command{Name: "auth", Usage: "sign in, and see who you are signed in as", Subcommands: []*cli.Command{
		authLoginCommand(env),
		leaf("whoami", "show who you are signed in as", authWhoami),
		leaf("logout", "end the dashboard session and remove its token", authLogout),
		authValidateCommand(env),
	}}
}

// readPassword asks a person without echo; a pipe's first line is the password.
func (e *Env) readPassword(ctx context.Context) (string, error) {
	if e.InTTY {
		return e.hidden(ctx, "dashboard password: ")
	}
	line, err := e.readLine(ctx)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// tokenPlace returns the configuration and the file that a token will go into; without such a file it fails at once,
// before a password prompt.
func (e *Env) tokenPlace() (*config.Resolved, *config.File, error) {
	r, err := e.Config()
	if err != nil {
		return nil, nil, err
	}
	f, err := e.configFile()
	if err != nil {
		return nil, nil, err
	}
	if f.Location() == "" {
		return nil, nil, f.Save()
	}
	return r, f, nil
}

// storeToken changes the file that a token goes into. The file is read again: others may have written it while the person
// signed in.
func (e *Env) storeToken(ctx context.Context, f *config.File, set func(f *config.File, key config.Key) error) error {
	key, err := config.Find("dashboard_token")
	if err != nil {
		return err
	}
	if err := config.Update(ctx, f.Location(), func(f *config.File) error { return set(f, key) }); err != nil {
		return err
	}
	if e.Getenv(key.Env) != "" {
		e.Talk("%s is set and takes precedence over the stored token", key.Env)
	}
	return nil
}

func authLogin(ctx context.Context, env *Env) error {
	r, f, err := env.tokenPlace()
	if err != nil {
		return err
	}
	password, err := env.readPassword(ctx)
	if err != nil {
		return err
	}
	if password == "" {
		return fault.New("no_password", "no password was given").WithHint("type it when asked, or pipe it: mlp auth login < password-file")
	}
	client, err := env.dashboardClient()
	if err != nil {
		return err
	}
	login, err := decode[dashboard.Login](client.Login(ctx, dashboard.LoginRequest{Password: password}))
	if err != nil {
		if refused := fault.From(err); refused.Status == 401 {
			return refused.WithHint("try again: mlp auth login")
		}
		return err
	}
	err = env.storeToken(ctx, f, func(f *config.File, key config.Key) error { return f.Set(key, r.Context, login.Token) })
	if err != nil {
		return err
	}
	return env.done(map[string]any{"role": login.Role, "tenant": login.Tenant, "expires_at": login.ExpiresAt, "context": nullIfEmpty(r.Context), "file": f.Location()},
		"signed in as %s until %s; the token is in %s", login.Role, login.ExpiresAt.UTC().Format("2006-01-02 15:04:05Z"), f.Location())
}

func authWhoami(ctx context.Context, env *Env) error {
	client, err := env.dashboardClient()
	if err != nil {
		return err
	}
	me, err := decode[dashboard.Identity](client.Me(ctx))
	if err != nil {
		return err
	}
	return env.Printer().Print(output.Grid{Columns: []string{"Field", "Value"}, Doc: shownIdentity{me, me.Acr, me.Idp, me.Name}, Rows: [][]any{
		{"Subject", me.Sub}, {"Name", me.Name}, {"Role", string(me.Role)}, {"Tenant", me.Tenant}, {"Signed in by", string(me.AuthMethod)},
		{"Provider", me.Idp}, {"Level", me.Acr}, {"Capabilities", me.Capabilities}, {"Expires", me.ExpiresAt},
	}})
}

// shownIdentity shows unknown values as null, where the dashboard omits them.
type shownIdentity struct {
	dashboard.Identity
	Acr  *string `json:"acr"`
	Idp  *string `json:"idp"`
	Name *string `json:"name"`
}

// authLogout ends the session at the dashboard; the stored token goes even if the dashboard took it for ended. The
// dashboard has no session of a token that an identity provider gave: that one ends by being forgotten.
func authLogout(ctx context.Context, env *Env) error {
	r, err := env.Config()
	if err != nil {
		return err
	}
	key, err := config.Find("dashboard_token")
	if err != nil {
		return err
	}
	if r.Get(key.Name) == "" {
		return env.done(map[string]any{"ended": false, "removed": false}, "there is no dashboard token: nothing to log out of")
	}
	ended := false
	if session, _ := r.Session(); session == nil {
		client, err := env.dashboardClient()
		if err != nil {
			return err
		}
		err = discard(client.Logout(ctx))
		ended = err == nil
		if err != nil && fault.From(err).Status != 401 {
			return err
		}
	} else {
		ended = env.revokeSession(ctx, session)
	}
	// The token goes from where it was read; one of the environment is not this command's to remove.
	stored, place := false, ""
	for _, v := range r.All() {
		switch {
		case v.Key.Name != key.Name:
		case strings.HasPrefix(v.Source, "context:"):
			stored, place = true, r.Context
		case v.Source == "file":
			stored = true
		}
	}
	removed := false
	if stored {
		err := config.Update(ctx, env.configPath(), func(f *config.File) error {
			removed = f.Unset(key, place)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if env.Getenv(key.Env) != "" {
		env.Talk("%s is still set in the environment", key.Env)
	}
	return env.done(map[string]any{"ended": ended, "removed": removed}, "logged out")
}

// authValidate tries each credential with a read. A refused one is a failure; one that is not set is not.
func authValidate(ctx context.Context, env *Env) error {
	r, err := env.Config()
	if err != nil {
		return err
	}
	type row struct {
		Service    string  `json:"service"`
		Credential string  `json:"credential"`
		Set        bool    `json:"set"`
		Result     string  `json:"result"`
		Detail     *string `json:"detail"`
	}
	var answer any
	tries := []struct {
		service, key string
		try          func() error
	}{
		{"control plane", "control_plane_token", func() error { return env.controlPlane(r).get(ctx, "/approvals?limit=1", &answer) }},
		{"inference", "inference_token", func() error { _, err := env.loaded(ctx, env.serving(r)); return err }},
		{"dashboard", "dashboard_token", func() error {
			client, err := env.dashboardClient()
			if err != nil {
				return err
			}
			_, err = decode[dashboard.Identity](client.Me(ctx))
			return err
		}},
		{"tracker", "tracker_token", func() error { _, err := env.registered(ctx); return err }},
		{"orchestrator", "orchestrator_token", func() error {
			orch := orchestrator.New(r.Get("orchestrator"), env.HTTP, orchestrator.Key(r.Get("orchestrator_token")))
			if _, err := orch.FilterFlowRuns(ctx, orchestrator.Filter{Limit: 1}); err != nil {
				return orchestratorFault(r.Get("orchestrator"), err)
			}
			return nil
		}},
	}
	rows := make([]row, len(tries))
	errs := make([]error, len(tries))
	var wg sync.WaitGroup
	for i, t := range tries {
		wg.Go(func() { errs[i] = t.try() })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	g := output.Grid{Columns: []string{"Service", "Credential", "Set", "Result", "Detail"}}
	refused, away := 0, 0
	for i, t := range tries {
		w := row{Service: t.service, Credential: t.key, Set: r.Get(t.key) != "", Result: "ok"}
		if errs[i] != nil {
			detail := errs[i].Error()
			w.Detail = &detail
			switch failed := fault.From(errs[i]); {
			case !w.Set && (failed.Status == 401 || failed.Status == 403):
				w.Result = "not set"
			case failed.Status == 401 || failed.Status == 403:
				w.Result = "refused"
				refused++
			case failed.Code == "unreachable" || failed.Code == "timeout":
				w.Result = "unreachable"
				away++
			default: // a redirect, a page, another program: something is there, and it is not the service
				w.Result = "unexpected"
				away++
			}
		}
		rows[i] = w
		g.Rows = append(g.Rows, []any{w.Service, w.Credential, w.Set, styledStatus(w.Result), w.Detail})
	}
	g.Doc = rows
	var f *fault.Error
	switch {
	case refused > 0:
		f = fault.New("credentials_refused", "%d of %d services do not take their credential", refused, len(tries)).WithHint("see where each comes from: mlp config show")
	case away > 0:
		f = fault.New("credentials_not_checked", "%d of %d services gave no usable answer to check a credential by", away, len(tries)).WithHint("see which run: mlp status")
	default:
		return env.Printer().Print(g)
	}
	f.Faults = rows
	return env.failWith(f, g)
}
