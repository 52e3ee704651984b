package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// stackServices are the services of compose.yaml that stay up; those that run once are none of them.
var stackServices = []string{"postgres", "redis", "nats", "object-store", "tracker", "orchestrator", "worker", "inference", "bus-bridge",
	"control-plane", "dashboard", "assistant", "evidence-api", "metrics-store", "dashboards"}

func stackCommand(env *Env) *cli.Command {
	dir := &cli.StringFlag{Name: "dir", Usage: "checkout of the platform (default: the one that holds this folder, else the one that holds mlp)"}
	service := &cli.StringFlag{Name: "service", Aliases: []string{"s"}, Usage: "only this service: " + strings.Join(stackServices, ", ")}
	command := func(name, usage string, flags []cli.Flag, run func(context.Context, *Env, stackOptions) error) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, Flags: append(flags, dir), Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			o := stackOptions{dir: c.String("dir"), service: c.String("service"), volumes: c.Bool("volumes"), tail: c.Int("tail"),
				follow: c.Bool("follow") && !c.Bool("no-follow"), dryRun: c.Bool("dry-run")}
			if err := oneOf("--service", o.service, stackServices...); err != nil {
				return err
			}
			switch {
			case o.volumes && o.service != "":
				return fault.Usage("--volumes deletes the data of the whole stack; it does not go with --service")
			case c.IsSet("tail") && o.tail < 1:
				return fault.Usage("--tail must be at least 1")
			case c.IsSet("follow") && c.Bool("follow") && env.Format.Structured():
				return fault.Usage("--follow is for people; it does not go with --output %s", env.Format)
			case c.Bool("follow") && c.Bool("no-follow") && c.IsSet("follow"):
				return fault.Usage("--follow and --no-follow contradict each other")
			}
			return run(c.Context, env, o)
		}}
	}
	return &cli.Command{Name: "stack", Usage: "the platform as containers on this machine", Subcommands: []*cli.Command{
		command("up", "build what is missing, start it, and wait until it is healthy", []cli.Flag{service, dryRunFlag()}, stackUp),
		command("down", "stop the containers; the data stays", []cli.Flag{service,
			&cli.BoolFlag{Name: "volumes", Usage: "delete the data too"}, dryRunFlag()}, stackDown),
		command("restart", "stop and start what runs", []cli.Flag{service, dryRunFlag()}, stackRestart),
		command("logs", "show the logs of the services", []cli.Flag{service,
			&cli.IntFlag{Name: "tail", Aliases: []string{"n"}, Value: 50, Usage: "only the last lines of each service"},
			&cli.BoolFlag{Name: "follow", Value: true, Usage: "keep printing new lines until Ctrl-C (default for people)", DefaultText: "true"},
			&cli.BoolFlag{Name: "no-follow", Usage: "stop at the end"}}, stackLogs),
		command("status", "each service, its state and its ports", nil, stackStatus),
	}}
}

type stackOptions struct {
	dir, service            string
	volumes, follow, dryRun bool
	tail                    int
}

// target names what a command acts on.
func (o stackOptions) target() string { return cmpOr(o.service, "stack") }

// changeStack runs one command of scripts/up.sh that changes the stack, after the question.
func changeStack(ctx context.Context, env *Env, o stackOptions, question string, yesByDefault bool, done string, line ...string) error {
	s, err := env.findStack(o.dir)
	if o.dryRun {
		check := Check{Name: "a Docker engine answers", Detail: "the engine is asked only if there is a checkout"}
		if err == nil {
			check.Pass, check.Detail = s.engine(ctx)
		}
		checks := []Check{{Name: "the checkout has scripts/up.sh", Pass: err == nil, Detail: s.root}, check}
		if err != nil {
			checks[0].Detail = err.Error()
		}
		return env.DryRun(o.target(), map[string]any{"run": append([]string{stackScript}, line...)}, checks)
	}
	if err != nil {
		return err
	}
	yes, err := env.Confirm(ctx, question, yesByDefault)
	if err != nil || !yes {
		return err
	}
	if err := s.run(ctx, line...); err != nil {
		return err
	}
	return env.done(map[string]any{"target": o.target(), "action": env.command[len("stack "):], "volumes_deleted": o.volumes}, "%s", done)
}

func stackUp(ctx context.Context, env *Env, o stackOptions) error {
	if o.service != "" {
		return changeStack(ctx, env, o, "Start "+o.service+"?", true, o.service+" is started", "compose", "up", "-d", "--no-build", o.service)
	}
	return changeStack(ctx, env, o, "Start the whole stack?", true, "the stack is up; see: mlp stack status", "up")
}

func stackDown(ctx context.Context, env *Env, o stackOptions) error {
	switch {
	case o.service != "":
		return changeStack(ctx, env, o, "Stop "+o.service+"?", false, o.service+" is stopped; its data stays", "compose", "stop", o.service)
	case o.volumes:
		return changeStack(ctx, env, o, "Stop the stack and DELETE all its data?", false, "the stack is down and its data is deleted", "down", "--volumes")
	}
	return changeStack(ctx, env, o, "Stop the stack? Its data stays.", false, "the stack is down; its data stays", "down")
}

func stackRestart(ctx context.Context, env *Env, o stackOptions) error {
	line := []string{"compose", "restart"}
	if o.service != "" {
		line = append(line, o.service)
	}
	return changeStack(ctx, env, o, "Restart "+cmpOr(o.service, "the whole stack")+"?", false, cmpOr(o.service, "the stack")+" is restarted", line...)
}

func stackLogs(ctx context.Context, env *Env, o stackOptions) error {
	s, err := env.findStack(o.dir)
	if err != nil {
		return err
	}
	line := []string{"compose", "logs", "--no-color", "--tail", fmt.Sprint(o.tail)}
	structured := env.Format.Structured()
	if o.follow && !structured {
		line = append(line, "--follow")
	}
	if o.service != "" {
		line = append(line, o.service)
	}
	if !structured {
		err := s.stream(ctx, line...)
		if ctx.Err() != nil {
			return nil // Ctrl-C is how following ends
		}
		return err
	}
	text, err := s.output(ctx, line...)
	if err != nil {
		return err
	}
	type row struct {
		Container string `json:"container"`
		Message   string `json:"message"`
	}
	doc := []row{}
	g := output.Grid{Columns: []string{"Container", "Message"}}
	for l := range strings.Lines(text) {
		container, message, ok := strings.Cut(strings.TrimRight(l, "\r\n"), "|")
		if !ok {
			container, message = "", container
		}
		w := row{strings.TrimSpace(container), strings.TrimPrefix(message, " ")}
		doc = append(doc, w)
		g.Rows = append(g.Rows, []any{w.Container, w.Message})
	}
	g.Doc = doc
	return env.Printer().Print(g)
}

func stackStatus(ctx context.Context, env *Env, o stackOptions) error {
	s, err := env.findStack(o.dir)
	if err != nil {
		return err
	}
	text, err := s.output(ctx, "compose", "ps", "-a", "--format", "json")
	if err != nil {
		return err
	}
	containers, err := readContainers(text)
	if err != nil {
		return err
	}
	type row struct {
		Service string   `json:"service"`
		State   *string  `json:"state"`
		Health  *string  `json:"health"`
		Ports   []string `json:"ports"`
	}
	doc := []row{}
	g := output.Grid{Columns: []string{"Service", "State", "Health", "Ports"}}
	add := func(w row) {
		doc = append(doc, w)
		var health any
		if w.Health != nil {
			health = styledStatus(*w.Health)
		}
		g.Rows = append(g.Rows, []any{w.Service, w.State, health, strings.Join(w.Ports, ", ")})
	}
	for _, name := range stackServices {
		at := slices.IndexFunc(containers, func(c container) bool { return c.Service == name })
		if at < 0 {
			add(row{Service: name, Ports: []string{}})
			continue
		}
		add(row{name, &containers[at].State, optional(containers[at].Health), containers[at].ports()})
	}
	// What runs once, such as a migration, is shown only where it failed.
	for _, c := range containers {
		if !slices.Contains(stackServices, c.Service) && (c.State != "exited" || c.ExitCode != 0) {
			state := c.State
			if state == "exited" {
				state = fmt.Sprintf("failed (exit %d)", c.ExitCode)
			}
			add(row{c.Service, &state, optional(c.Health), c.ports()})
		}
	}
	if len(containers) == 0 {
		g.Notes = []string{"", "Nothing runs. Start it with: mlp stack up"}
	}
	g.Doc = doc
	return env.Printer().Print(g)
}
