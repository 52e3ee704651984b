package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/busbridge"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/modelrepo"
)

func busCommand(env *Env) *cli.Command {
	repoFlag := func() cli.Flag {
		return &cli.StringFlag{Name: "repo", Usage: "model repository (default: PLATFORM_MODELREPO, else this folder)"}
	}
	return &cli.Command{Name: "bus", Usage: "models on the message bus", Subcommands: []*cli.Command{
		{Name: "list", Usage: "the UUID of each model of the repository", Flags: append(listFlags(0), repoFlag()), Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			o, err := env.readListOptions(c)
			if err != nil {
				return err
			}
			return busList(env, c.String("repo"), o)
		}},
		{Name: "init-uuids", Usage: "give a UUID to each model that has none", Flags: []cli.Flag{repoFlag(), dryRunFlag()}, Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			return busInit(env, c.String("repo"), c.Bool("dry-run"))
		}},
		{Name: "regen-uuid", Usage: "give a model a new UUID; its producers have to use it from then on", ArgsUsage: "<model>", Flags: []cli.Flag{repoFlag(), dryRunFlag()}, Action: func(c *cli.Context) error {
			a, err := readArguments(c, "model")
			if err != nil {
				return err
			}
			return busRegenerate(c.Context, env, c.String("repo"), a[0], c.Bool("dry-run"))
		}},
		{Name: "status", Usage: "the bridge's health and what it has answered", Flags: watchFlags(), Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			return env.maybeWatch(c, func() error { return busStatus(c.Context, env) })
		}},
	}}
}

// busModel is one model as bus list and init-uuids show it.
type busModel struct {
	Model string  `json:"model"`
	UUID  *string `json:"uuid"`
}

func busGrid(models []busModel) output.Grid {
	g := output.Grid{Columns: []string{"Model", "UUID"}, Empty: "The repository declares no model."}
	for _, m := range models {
		g.Rows = append(g.Rows, []any{m.Model, m.UUID})
	}
	return g
}

func busModels(repo *modelrepo.Repo) []busModel {
	out := []busModel{}
	for _, m := range sortedModels(repo) {
		out = append(out, busModel{m.Name, optional(m.BusUUID)})
	}
	return out
}

func busList(env *Env, dir string, o listOptions) error {
	_, repo, err := env.modelRepo(dir, "")
	if err != nil {
		return err
	}
	models := busModels(repo)
	g := busGrid(models)
	if slices.ContainsFunc(models, func(m busModel) bool { return m.UUID == nil }) {
		g.Notes = []string{"", "give the others one with: mlp bus init-uuids"}
	}
	if err := o.arrange(&g, &models); err != nil {
		return err
	}
	g.Doc = models
	return env.Printer().Print(g)
}

func busInit(env *Env, asked string, dryRun bool) error {
	dir, repo, err := env.modelRepo(asked, "")
	if err != nil {
		return err
	}
	var files []scaffoldFile
	models := busModels(repo)
	for i, m := range sortedModels(repo) {
		if m.BusUUID != "" {
			continue
		}
		f, id, err := withBusUUID(m)
		if err != nil {
			return err
		}
		files, models[i].UUID = append(files, f), &id
	}
	if dryRun {
		paths := []string{}
		for _, f := range files {
			paths = append(paths, f.path)
		}
		return env.DryRun("model repository", map[string]any{"repo": dir, "files": paths}, []Check{{Name: "definitions can be read", Pass: true}})
	}
	if err := writeAll(dir, files); err != nil {
		return err
	}
	g := busGrid(models)
	g.Doc = map[string]any{"assigned": len(files), "models": models}
	switch len(files) {
	case 0:
		g.Notes = []string{"", "every model had a UUID already"}
	default:
		g.Notes = []string{"", "commit the changed definitions; the bridge learns them once the control plane has them"}
	}
	return env.Printer().Print(g)
}

func busRegenerate(ctx context.Context, env *Env, asked, name string, dryRun bool) error {
	dir, repo, err := env.modelRepo(asked, "")
	if err != nil {
		return err
	}
	m, ok := repo.Model(name)
	if !ok {
		return fault.New("model_not_found", "the repository %s has no model %q", dir, name).WithHint("see: mlp bus list")
	}
	f, id, err := withBusUUID(m)
	if err != nil {
		return err
	}
	if dryRun {
		return env.DryRun(m.Name, map[string]any{"repo": dir, "file": f.path, "uuid": optional(m.BusUUID)}, []Check{{Name: "definition can be changed", Pass: true}})
	}
	if m.BusUUID != "" {
		yes, err := env.Confirm(ctx, "Producers that send to "+m.BusUUID+" will get no prediction. Change it?", false)
		if err != nil || !yes {
			return err
		}
	}
	if err := writeAll(dir, []scaffoldFile{f}); err != nil {
		return err
	}
	return env.done(map[string]any{"model": m.Name, "uuid": id, "previous_uuid": optional(m.BusUUID), "file": f.path},
		"%s is %s on the bus now; commit %s, and tell the producers", m.Name, id, f.path)
}

// withBusUUID returns the model's definition with a new UUID.
func withBusUUID(m *modelrepo.Model) (scaffoldFile, string, error) {
	id := uuid.NewString()
	text, err := m.WithBusUUID(id)
	if err != nil {
		return scaffoldFile{}, "", fault.New("definition_unclear", "%s: %v; nothing was changed", m.File.Path, err).WithHint("write into it yourself: bus_uuid: %s", id)
	}
	return scaffoldFile{m.File.Path, string(text)}, id, nil
}

func busStatus(ctx context.Context, env *Env) error {
	r, err := env.Config()
	if err != nil {
		return err
	}
	s := env.remote(r, "bus bridge", "bus", "inference_token")
	health, err := bridgeHealth(ctx, s)
	if err != nil {
		return err
	}
	var stats busbridge.Stats
	if err := s.get(ctx, "/stats", &stats); err != nil {
		return err
	}
	connected := "yes"
	if !health.Connected {
		connected = "no"
	}
	g := output.Grid{Columns: []string{"Bridge", "Connected", "Mode", "Models", "Inferences", "Vectors", "Retrains"}, Doc: map[string]any{"health": health, "stats": bridgeStats{stats, stats.BridgeError}}}
	g.Rows = [][]any{{styledStatus(string(health.Status)), connected, string(health.Mode), health.Models, stats.InferencesTotal, stats.VectorsTotal, stats.RetrainsTotal}}
	per := output.Grid{Title: "Answered since the bridge started", Columns: []string{"Model", "Inferences", "Errors", "p50 (ms)", "p99 (ms)"}, Empty: "Nothing was asked yet."}
	names := []string{}
	for name := range stats.PerModel {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		m := stats.PerModel[name]
		per.Rows = append(per.Rows, []any{name, m.Inferences, m.Errors, m.P50Ms, m.P99Ms})
	}
	if stats.BridgeError != nil {
		per.Notes = []string{"", output.Clean(*stats.BridgeError)}
	}
	if err := env.Printer().Print(g, per); err != nil {
		return err
	}
	if !health.Connected {
		return fault.New("bus_disconnected", "the bridge is not connected to the message bus")
	}
	return nil
}

// bridgeStats shows what keeps the bridge from its work as null when nothing does; the wire leaves it out.
type bridgeStats struct {
	busbridge.Stats
	BridgeError *string `json:"bridge_error"`
}

// bridgeHealth reads /health, whose body says the same with 503.
func bridgeHealth(ctx context.Context, s *remote) (h busbridge.Health, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/health", nil)
	if err != nil {
		return h, fault.New("bad_url", "cannot build a request for %s: %v", s.name, err)
	}
	resp, data, err := s.send(req)
	if err != nil && (resp == nil || resp.StatusCode != http.StatusServiceUnavailable) {
		return h, err
	}
	if jsonErr := json.Unmarshal(data, &h); jsonErr != nil || !h.Status.Valid() {
		return h, errors.Join(err, s.notJSON(resp))
	}
	return h, nil
}
