package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/trust"
)

// Bounds of one look at a provider's discovery document.
const (
	discoveryTimeout = 5 * time.Second
	maxDiscovery     = 1 << 20
)

func authValidateCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "validate", Usage: "check a trust file, or without one the stored credentials at their services", Flags: []cli.Flag{
		&cli.StringFlag{Name: "file", Usage: "trust file of identity providers"},
		&cli.BoolFlag{Name: "check-discovery", Usage: "with --file: also read the discovery document of each provider"},
	}, Action: func(c *cli.Context) error {
		if _, err := readArguments(c); err != nil {
			return err
		}
		switch {
		case c.IsSet("file"):
			return validateTrust(c.Context, env, c.String("file"), c.Bool("check-discovery"))
		case c.Bool("check-discovery"):
			return fault.Usage("--check-discovery needs --file")
		}
		return authValidate(c.Context, env)
	}}
}

// validateTrust checks a trust file as the services read it: one fault refuses the whole file.
func validateTrust(ctx context.Context, env *Env, path string, discover bool) error {
	file, _, err := trust.Load(path, trust.Environment{})
	var faults trust.Faults
	if errors.As(err, &faults) {
		f := fault.New("trust_file_faulty", "%s is refused: %s", path, faults[0].Msg)
		if len(faults) > 1 {
			f.Message += fmt.Sprintf(" (and %d more)", len(faults)-1)
		}
		f.Faults = faults
		if !env.Format.Structured() {
			for _, each := range faults {
				fmt.Fprintln(env.Err, output.Clean(each.Error()))
			}
		}
		return f
	}
	if err != nil {
		return err
	}
	type row struct {
		Provider  string  `json:"provider"`
		Issuer    string  `json:"issuer"`
		Discovery *bool   `json:"discovery"` // null: not looked at
		Detail    *string `json:"detail"`
	}
	rows, bad := []row{}, 0
	g := output.Grid{Columns: []string{"Provider", "Issuer", "Discovery", "Detail"}, Empty: "The file is sound and names no provider."}
	for _, p := range file.Providers {
		w, shown := row{Provider: p.Name, Issuer: p.Issuer}, any("not looked at")
		switch {
		case discover && !p.Discovery:
			shown = "not used"
		case discover:
			err := checkDiscovery(ctx, env.HTTP, p)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			ok := err == nil
			w.Discovery, shown = &ok, output.Styled{Value: "ok", Style: output.Good}
			if !ok {
				detail := err.Error()
				w.Detail, shown, bad = &detail, output.Styled{Value: "fail", Style: output.Bad}, bad+1
			}
		}
		rows = append(rows, w)
		g.Rows = append(g.Rows, []any{w.Provider, w.Issuer, shown, w.Detail})
	}
	g.Doc = rows
	if bad == 0 {
		return env.Printer().Print(g)
	}
	f := fault.New("discovery_failed", "%d of %d providers have no discovery document that can be used", bad, len(rows))
	f.Faults = rows
	return env.failWith(f, g)
}

// checkDiscovery reads the document of OpenID Connect Discovery 1.0, section 4: its issuer must be that of the file.
func checkDiscovery(ctx context.Context, client *http.Client, p trust.Provider) error {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.Issuer, "/")+"/.well-known/openid-configuration", http.NoBody)
	if err != nil {
		return err
	}
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := direct.Do(req)
	if err != nil {
		return fmt.Errorf("the provider cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the discovery document is answered with %s", resp.Status)
	}
	var doc struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxDiscovery)).Decode(&doc); err != nil {
		return errors.New("the discovery document is no JSON object")
	}
	switch {
	case doc.Issuer != p.Issuer:
		return fmt.Errorf("the document names the issuer %.200q", doc.Issuer)
	case p.JWKSURI == "" && doc.JWKSURI == "":
		return errors.New("the document names no jwks_uri")
	}
	return nil
}
