package gate

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

const (
	defaultPort = 8765
	tokenEnv    = "SVC_CONTROL_TOWER_TOKEN"

	requestTimeout = 10 * time.Second
	maxConns       = 64
)

const description = `Opens an editor for a matrix of verdicts: candidates, their truth, probes, verifiers and the
quorum. Audits run in this process, on 127.0.0.1 only. Edits stay in the browser: export what you
want to keep. Without INPUT it opens an example.

The printed address works once; Enter prints a fresh one. Scripts that POST to /api/audit set a
token of their own in ` + tokenEnv + `.`

// editorCommand is `svc gate-audit-ui`.
func editorCommand(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "gate-audit-ui", Category: Category, Usage: "edit and audit a matrix of verdicts in the browser",
		ArgsUsage: "[INPUT]", Description: description,
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "port", Usage: "`PORT` on 127.0.0.1; 0 takes any free one", Value: defaultPort},
			&cli.BoolFlag{Name: "no-browser", Usage: "print the address and open nothing", DisableDefaultText: true},
		}, command.JSONFlags()...),
		Action: e.Action(command.Envelope, func(c *cli.Context) error { return runEditor(c, e) }),
	}
}

func runEditor(c *cli.Context, e *command.Env) error {
	args, err := command.Arguments(c, "[INPUT]")
	if err != nil {
		return err
	}
	s := &server{version: e.Version, audit: Audit}
	if s.matrix, err = editorInput(args[0]); err != nil {
		return err
	}
	if s.token, err = editorToken(e); err != nil {
		return err
	}
	l, err := loopback.Listen(c.Int("port"))
	if err != nil {
		return command.Failf("port_unavailable", "%w", err)
	}
	url := "http://" + l.Addr().String()
	e.Launch("gate-audit-ui", url, func() string { return url + "/?launch=" + s.launches.New() }, !c.Bool("no-browser"))
	h := &httpd.Server{Handler: s.serve(c.Context), RequestTimeout: requestTimeout, MaxConns: maxConns, Refused: s.refused}
	return h.Serve(c.Context, l)
}

// editorInput is the text that the editor opens with: the file's matrix, or the example.
func editorInput(path string) (string, error) {
	if path == "" {
		return string(samples.File("gate/panel.json")), nil
	}
	doc, err := command.ReadDocument(path)
	if err != nil {
		return "", err
	}
	if _, err := Read(doc); err != nil {
		return "", err
	}
	// The form of reports keeps the order of keys, and numbers as exact as they are.
	text, err := canon.RPretty(doc)
	return string(text), err
}

func editorToken(e *command.Env) (string, error) {
	t, given := e.Variable(tokenEnv)
	if !given {
		return loopback.NewToken(), nil
	}
	if !loopback.ValidToken(t) {
		return "", command.Failf("invalid_token", "%s must hold 32 to 4096 characters: letters, digits and - . _ ~", tokenEnv)
	}
	return t, nil
}

// auditor is [Audit].
type auditor func(context.Context, canon.Value, Options) (*Report, error)
