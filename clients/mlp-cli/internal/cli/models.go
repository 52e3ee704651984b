package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/argv"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/tracker"
)

func modelsCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "models", Usage: "the model registry", Subcommands: []*cli.Command{
		{Name: "list", Usage: "registered models, with the version in Production", Flags: append(watchFlags(), listFlags(0)...), Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			o, err := env.readListOptions(c)
			if err != nil {
				return err
			}
			return env.maybeWatch(c, func() error { return modelsList(c.Context, env, o) })
		}},
		{Name: "info", Usage: "versions, aliases and test metrics of one model", ArgsUsage: "<model>", Action: func(c *cli.Context) error {
			a, err := readArguments(c, "model")
			if err != nil {
				return err
			}
			return modelsInfo(c.Context, env, a[0])
		}},
		modelsDiffCommand(env),
		modelsLineageCommand(env),
		modelsCostCommand(env),
		modelsHistoryCommand(env),
		modelsAtCommand(env),
		modelsRollbackCommand(env),
	}}
}

// tracker returns the client of the experiment tracker; trackerFault explains its failures.
func (e *Env) tracker() (*tracker.Client, string, error) {
	r, err := e.Config()
	if err != nil {
		return nil, "", err
	}
	return tracker.New(r.Get("tracker"), e.HTTP, tracker.Token(r.Get("tracker_token"))), r.Get("tracker"), nil
}

func trackerFault(url string, err error) error {
	var te *tracker.Error
	switch {
	case errors.As(err, &te) && te.Code == "": // not an answer of the tracker: a proxy's, or another program's
		f := foreignAnswer("tracker", "tracker", "tracker_token", url, te.Status)
		f.Cause = err
		return f
	case errors.As(err, &te):
		f := fault.New(strings.ToLower(te.Code), "tracker: %s", te.Message)
		f.Service, f.Status, f.Cause = "tracker", te.Status, err
		return f
	case errors.Is(err, tracker.ErrUnreadable):
		f := foreignAnswer("tracker", "tracker", "tracker_token", url, 200)
		f.Cause = err
		return f
	case errors.Is(err, tracker.ErrUnavailable):
		return unreachableFault("tracker", "tracker", url, err)
	}
	return err
}

// registered lists every model, sorted by name.
func (e *Env) registered(ctx context.Context) ([]tracker.RegisteredModel, error) {
	tr, url, err := e.tracker()
	if err != nil {
		return nil, err
	}
	var out []tracker.RegisteredModel
	for m, err := range tr.SearchRegisteredModels(ctx, "") {
		if err != nil {
			return nil, trackerFault(url, err)
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b tracker.RegisteredModel) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// nearestRegistered returns the registered model with the most similar name; empty if none is similar, or the tracker
// does not answer.
func (e *Env) nearestRegistered(ctx context.Context, name string) string {
	list, err := e.registered(ctx)
	if err != nil {
		return ""
	}
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = strings.ToUpper(m.Name)
	}
	return argv.Nearest(strings.ToUpper(name), names)
}

func modelsList(ctx context.Context, env *Env, o listOptions) error {
	list, err := env.registered(ctx)
	if err != nil {
		return err
	}
	type row struct {
		Name        string            `json:"name"`
		TrackerName string            `json:"tracker_name"`
		Production  *string           `json:"production"`
		Latest      *string           `json:"latest"`
		Aliases     map[string]string `json:"aliases"`
	}
	doc := []row{}
	g := output.Grid{Columns: []string{"Name", "Production", "Latest", "Aliases"}, Empty: "No model is registered. Train one with: mlp retrain <model>"}
	for _, m := range list {
		w := row{Name: strings.ToUpper(m.Name), TrackerName: m.Name, Aliases: m.Aliases}
		if w.Aliases == nil {
			w.Aliases = map[string]string{}
		}
		if v, ok := findAlias(m.Aliases, "Production"); ok {
			w.Production = &v
		}
		latest := 0
		for _, v := range m.Latest {
			if n, err := strconv.Atoi(v.Version); err == nil {
				latest = max(latest, n)
			}
		}
		if latest > 0 {
			s := strconv.Itoa(latest)
			w.Latest = &s
		}
		var names []string
		for _, a := range sortedKeys(w.Aliases) {
			names = append(names, a+"="+w.Aliases[a])
		}
		doc = append(doc, w)
		g.Rows = append(g.Rows, []any{w.Name, w.Production, w.Latest, names})
	}
	g.Doc = doc
	return env.printList(o, g, false)
}

// findAlias finds an alias in any case, as the tracker treats them.
func findAlias(aliases map[string]string, name string) (string, bool) {
	for a, v := range aliases {
		if strings.EqualFold(a, name) {
			return v, true
		}
	}
	return "", false
}

// findRegistered finds a model in the tracker, under the name that its declaration gives it if need be.
func (e *Env) findRegistered(ctx context.Context, name string) (*tracker.Client, string, tracker.RegisteredModel, error) {
	tr, url, err := e.tracker()
	if err != nil {
		return nil, "", tracker.RegisteredModel{}, err
	}
	trackerName := strings.ToLower(name)
	m, err := tr.GetRegisteredModel(ctx, trackerName)
	if errors.Is(err, tracker.ErrNotFound) {
		if other := e.trackerName(ctx, name); other != "" && other != trackerName {
			m, err = tr.GetRegisteredModel(ctx, other)
		}
	}
	if errors.Is(err, tracker.ErrNotFound) {
		// A plain MLflow client may have given it capitals.
		list, _ := e.registered(ctx) // without the list, the model stays unknown
		if i := slices.IndexFunc(list, func(m tracker.RegisteredModel) bool { return strings.EqualFold(m.Name, name) }); i >= 0 {
			m, err = tr.GetRegisteredModel(ctx, list[i].Name)
		}
	}
	if errors.Is(err, tracker.ErrNotFound) {
		f := fault.New("unknown_model", "the tracker has no model %s", strings.ToUpper(name))
		f.Service, f.Status = "tracker", 404
		if near := e.nearestRegistered(ctx, name); near != "" {
			return nil, "", m, f.WithHint("did you mean: %s", near)
		}
		return nil, "", m, f.WithHint("see what is registered: mlp models list; train it with: mlp retrain %s", strings.ToUpper(name))
	}
	if err != nil {
		return nil, "", m, trackerFault(url, err)
	}
	return tr, url, m, nil
}

func modelsInfo(ctx context.Context, env *Env, name string) error {
	tr, url, m, err := env.findRegistered(ctx, name)
	if err != nil {
		return err
	}
	trackerName := m.Name
	type version struct {
		Version   string            `json:"version"`
		RunID     string            `json:"run_id"`
		CreatedAt time.Time         `json:"created_at"`
		Tags      map[string]string `json:"tags"`
		number    int
	}
	versions := []version{}
	for v, err := range tr.SearchModelVersions(ctx, "name = "+tracker.Quote(trackerName)) {
		if err != nil {
			return trackerFault(url, err)
		}
		w := version{Version: v.Version, RunID: v.RunID, CreatedAt: v.Created.UTC(), Tags: v.Tags}
		w.number, _ = strconv.Atoi(v.Version)
		if w.Tags == nil {
			w.Tags = map[string]string{}
		}
		versions = append(versions, w)
	}
	slices.SortFunc(versions, func(a, b version) int { return b.number - a.number })
	if m.Aliases == nil {
		m.Aliases = map[string]string{}
	}

	// The version shown in detail: the one in Production, else the newest.
	shown := ""
	if v, ok := findAlias(m.Aliases, "Production"); ok {
		shown = v
	} else if len(versions) > 0 {
		shown = versions[0].Version
	}
	metrics, params := map[string]float64{}, map[string]string{}
	for _, v := range versions {
		if v.Version == shown && v.RunID != "" {
			run, err := tr.GetRun(ctx, v.RunID)
			if err != nil && !errors.Is(err, tracker.ErrNotFound) {
				return trackerFault(url, err)
			}
			if run.Metrics != nil {
				metrics = run.Metrics
			}
			if run.Params != nil {
				params = run.Params
			}
		}
	}
	vg := output.Grid{Title: strings.ToUpper(m.Name), Columns: []string{"Version", "Aliases", "Commit", "Data", "Run", "Age"},
		Empty: "No version is registered.",
		Doc: map[string]any{"name": strings.ToUpper(m.Name), "tracker_name": m.Name, "aliases": m.Aliases, "versions": versions,
			"version": nullIfEmpty(shown), "metrics": metrics, "params": params}}
	for _, v := range versions {
		var names []string
		for _, a := range sortedKeys(m.Aliases) {
			if m.Aliases[a] == v.Version {
				names = append(names, a)
			}
		}
		data := v.Tags["data_origin"]
		if v.Tags["dummy"] == "true" {
			data = "dummy"
		}
		vg.Rows = append(vg.Rows, []any{v.Version, names, shortSHA(v.Tags["modelrepo_commit"]), data, shortSHA(v.RunID), output.Age(v.CreatedAt)})
	}
	if len(versions) == 0 || env.Format != output.Table {
		return env.Printer().Print(vg)
	}
	mg := metricGrid(metrics, metrics)
	mg.Title = fmt.Sprintf("Test metrics of version %s", shown)
	return env.Printer().Print(vg, mg)
}

// trackerName asks the control plane under which name a model is registered, since its declaration may set
// one (serving.model_id); empty when the control plane is away or does not know the model.
func (e *Env) trackerName(ctx context.Context, name string) string {
	r, err := e.Config()
	if err != nil {
		return ""
	}
	var meta controlplane.ModelMeta
	if err := e.controlPlane(r).get(ctx, "/models/"+escapeSegment(name)+"/meta", &meta); err != nil {
		return ""
	}
	return meta.TrackerName
}

// plainName is a name that no shell reads as anything else.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._][A-Za-z0-9._-]*$`) })

// completeModels offers model names within the 300 ms that completion may take; without a tracker, none.
func completeModels(ctx context.Context, env *Env) []string {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	list, err := env.registered(ctx)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(list))
	for _, m := range list {
		if plainName().MatchString(m.Name) {
			names = append(names, strings.ToUpper(m.Name))
		}
	}
	return names
}
