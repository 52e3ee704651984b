package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/config"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func configCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "config", Usage: "addresses, tokens and contexts", Subcommands: []*cli.Command{
		{Name: "show", Usage: "the configuration in force, and where each value comes from", Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			return configShow(env)
		}},
		{Name: "set", Usage: "store a value; a secret is prompted for without echo when left out", ArgsUsage: "<key> [value]", Action: func(c *cli.Context) error {
			a, err := readArguments(c, "key", "[value]")
			if err != nil {
				return err
			}
			return configSet(c.Context, env, a[0], a[1], c.NArg() == 2)
		}},
		{Name: "unset", Usage: "remove a stored value", ArgsUsage: "<key>", Action: func(c *cli.Context) error {
			a, err := readArguments(c, "key")
			if err != nil {
				return err
			}
			return configUnset(c.Context, env, a[0])
		}},
		{Name: "init", Usage: "prompt for every value", Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			return configInit(c.Context, env)
		}},
		{Name: "contexts", Usage: "the named contexts", Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			return configContexts(env)
		}},
		{Name: "use", Usage: "make a context the active one", ArgsUsage: "<context>", Action: func(c *cli.Context) error {
			a, err := readArguments(c, "context")
			if err != nil {
				return err
			}
			return configUse(c.Context, env, a[0])
		}},
	}}
}

func (e *Env) configPath() string { return config.Path(e.Getenv) }

func (e *Env) configFile() (*config.File, error) { return config.Load(e.configPath()) }

func configShow(env *Env) error {
	r, err := env.Config()
	if err != nil {
		return err
	}
	type row struct {
		Key    string  `json:"key"`
		Value  *string `json:"value"`
		Source string  `json:"source"`
	}
	g := output.Grid{Columns: []string{"Key", "Value", "Source"}}
	doc := make([]row, 0, len(config.Keys))
	for _, v := range r.All() {
		shown := v.Value
		if v.Key.Secret && shown != "" {
			shown = "***"
		}
		var p *string
		if shown != "" {
			p = &shown
		}
		doc = append(doc, row{v.Key.Name, p, v.Source})
		g.Rows = append(g.Rows, []any{v.Key.Name, p, v.Source})
	}
	g.Doc = doc
	if r.Context != "" {
		g.Notes = append(g.Notes, "", "context: "+r.Context)
	}
	return env.Printer().Print(g)
}

func configSet(ctx context.Context, env *Env, name, value string, given bool) error {
	key, err := config.Find(name)
	if err != nil {
		return err
	}
	if !given {
		if value, err = env.ask(ctx, key); err != nil {
			return err
		}
	}
	if value == "" {
		return fault.Usage("an empty value for %s makes no sense", name).WithHint("to remove it: mlp config unset %s", name)
	}
	path := env.configPath()
	if err := config.Update(ctx, path, func(f *config.File) error { return f.Set(key, env.Context, value) }); err != nil {
		return err
	}
	return env.done(map[string]any{"key": name, "set": true, "context": nullIfEmpty(env.Context), "file": path},
		"%s stored in %s", name, path)
}

// ask reads a value: a secret twice without echo, from a pipe its first line.
func (e *Env) ask(ctx context.Context, key config.Key) (string, error) {
	if !e.InTTY {
		if !key.Secret {
			return "", fault.Usage("missing argument <value>").WithHint("mlp config set %s <value>", key.Name)
		}
		line, err := e.readLine(ctx)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	if !key.Secret {
		return "", fault.Usage("missing argument <value>").WithHint("mlp config set %s <value>", key.Name)
	}
	first, err := e.hidden(ctx, key.Name+": ")
	if err != nil {
		return "", err
	}
	second, err := e.hidden(ctx, "again: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", fault.New("no_match", "the two entries differ; nothing stored")
	}
	return first, nil
}

func configUnset(ctx context.Context, env *Env, name string) error {
	key, err := config.Find(name)
	if err != nil {
		return err
	}
	path, was := env.configPath(), false
	err = config.Update(ctx, path, func(f *config.File) error {
		was = f.Unset(key, env.Context)
		return nil
	})
	if err != nil {
		return err
	}
	msg := "%s removed from %s"
	if !was {
		msg = "%s was not stored in %s"
	}
	return env.done(map[string]any{"key": name, "removed": was, "context": nullIfEmpty(env.Context), "file": path}, msg, name, path)
}

func configInit(ctx context.Context, env *Env) error {
	if !env.InTTY {
		return fault.New("no_terminal", "config init asks questions and needs a terminal").WithHint("use: mlp config set <key> <value>")
	}
	f, err := env.configFile()
	if err != nil {
		return err
	}
	r, err := config.Resolve(f, "", func(string) string { return "" })
	if err != nil {
		return err
	}
	answers := map[string]string{} // stored at the end, because other programs may write the file while a person types
	for _, v := range r.All() {
		if v.Key.Secret {
			s, err := env.hidden(ctx, fmt.Sprintf("%s (%s; empty keeps it): ", v.Key.Name, v.Key.Doc))
			if err != nil {
				return err
			}
			if s != "" {
				answers[v.Key.Name] = s
			}
			continue
		}
		for {
			fmt.Fprintf(env.Err, "%s (%s) [%s]: ", v.Key.Name, v.Key.Doc, v.Value)
			line, err := env.readLine(ctx)
			if errors.Is(err, io.EOF) {
				return fault.New("interrupted", "the answers end early; nothing stored")
			} else if err != nil {
				return err
			}
			if line = strings.TrimSpace(line); line == "" {
				break
			}
			if err := f.Set(v.Key, "", line); err != nil {
				fmt.Fprintln(env.Err, err)
				continue
			}
			answers[v.Key.Name] = line
			break
		}
	}
	err = config.Update(ctx, f.Location(), func(f *config.File) error {
		for _, k := range config.Keys {
			if value, ok := answers[k.Name]; ok {
				if err := f.Set(k, "", value); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return env.done(map[string]any{"file": f.Location()}, "configuration stored in %s", f.Location())
}

func configContexts(env *Env) error {
	f, err := env.configFile()
	if err != nil {
		return err
	}
	type row struct {
		Name   string `json:"name"`
		Active bool   `json:"active"`
	}
	g := output.Grid{Columns: []string{"Name", "Active"}, Empty: "No contexts. Make one with: mlp --context prod config set control_plane <url>"}
	doc := []row{}
	for _, n := range f.ContextNames() {
		active := n == f.ActiveContext
		doc = append(doc, row{n, active})
		g.Rows = append(g.Rows, []any{n, active})
	}
	g.Doc = doc
	return env.Printer().Print(g)
}

func configUse(ctx context.Context, env *Env, name string) error {
	err := config.Update(ctx, env.configPath(), func(f *config.File) error {
		if f.Contexts[name] == nil {
			return fault.Usage("unknown context %q; known: %s", name, strings.Join(f.ContextNames(), ", "))
		}
		f.ActiveContext = name
		return nil
	})
	if err != nil {
		return err
	}
	return env.done(map[string]any{"active_context": name}, "context %s is active", name)
}

// done reports a finished mutation: the document in structured formats, else one line.
func (e *Env) done(doc map[string]any, format string, a ...any) error {
	if !e.Format.Structured() {
		if e.Quiet {
			return nil
		}
		_, err := fmt.Fprintf(e.Out, format+"\n", a...)
		return err
	}
	keys := sortedKeys(doc)
	row := make([]any, len(keys))
	for i, k := range keys {
		row[i] = doc[k]
	}
	return e.Printer().Print(output.Grid{Columns: keys, Rows: [][]any{row}, Doc: doc})
}

func nullIfEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}
