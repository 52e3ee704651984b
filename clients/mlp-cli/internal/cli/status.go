package cli

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/cli/invocation"
)

func statusCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "status", Usage: "the platform at a glance", Flags: watchFlags(), Action: func(c *cli.Context) error {
		if _, err := readArguments(c); err != nil {
			return err
		}
		return env.maybeWatch(c, func() error { return showStatus(c.Context, env) })
	}}
}

type loadedModel struct {
	Model   string `json:"model"`
	Version string `json:"version"`
	Status  string `json:"status"`
}

type serviceStatus struct {
	Service string  `json:"service"`
	Status  string  `json:"status"`
	Note    *string `json:"note"`
}

type serviceError struct {
	Service string `json:"service"`
	Error   string `json:"error"`
}

func (e *Env) loaded(ctx context.Context, s *remote) ([]loadedModel, error) {
	var raw []inference.LoadedModel
	if err := s.get(ctx, "/models", &raw); err != nil {
		return nil, err
	}
	out := make([]loadedModel, len(raw))
	for i, m := range raw {
		out[i] = loadedModel{m.ModelName, m.ModelVersion, string(m.Status)}
	}
	return out, nil
}

const unreachable = "unreachable"

// describeNoAnswer describes a failed health check: only a service that gave no answer is unreachable; one that drains
// or requires another token is running.
func describeNoAnswer(err error) string {
	switch status := fault.From(err).Status; {
	case status == 0:
		return unreachable
	case status/100 == 4:
		return "refused"
	}
	return "degraded"
}

// refusedCredential returns err if a service refused the credential: its health is public, and does not show that.
func refusedCredential(err error) error {
	if err == nil {
		return nil
	}
	if status := fault.From(err).Status; status == http.StatusUnauthorized || status == http.StatusForbidden {
		return err
	}
	return nil
}

// showStatus queries all services in parallel; one that does not answer is a row that shows it. It fails only when
// none answers.
func showStatus(ctx context.Context, env *Env) error {
	r, err := env.Config()
	if err != nil {
		return err
	}
	cp, serving := env.controlPlane(r), env.serving(r)
	var health controlplane.Health
	var servingHealth inference.Health
	models, pending := []loadedModel{}, []listedApproval{}
	var errHealth, errServing, errModels, errPending error
	var wg sync.WaitGroup
	wg.Go(func() { errHealth = cp.get(ctx, "/health", &health) })
	wg.Go(func() { errServing = serving.get(ctx, "/health", &servingHealth) })
	wg.Go(func() {
		if m, err := env.loaded(ctx, serving); err != nil {
			errModels = err
		} else {
			models = m
		}
	})
	wg.Go(func() {
		p, err := env.approvals(ctx, "pending")
		if err == nil {
			var listed []listedApproval
			if listed, err = env.withPromotions(ctx, p, "pending"); err == nil {
				pending = listed
			}
		}
		errPending = err
	})
	wg.Wait()

	services, errs := []serviceStatus{}, []serviceError{}
	add := func(name, status, note string, err error) {
		s := serviceStatus{Service: name, Status: status}
		if err != nil {
			s.Status = describeNoAnswer(err)
			note = err.Error()
			errs = append(errs, serviceError{name, note})
		}
		if note != "" {
			s.Note = &note
		}
		services = append(services, s)
	}
	var notes []string
	for _, k := range sortedKeys(health.StartupChecks) {
		if health.StartupChecks[k] != "ok" {
			notes = append(notes, k+": "+health.StartupChecks[k])
		}
	}
	add("control plane", string(health.Status), strings.Join(notes, "; "), cmp.Or(errHealth, refusedCredential(errPending)))
	if errHealth == nil && health.Dispatch.State != "" {
		note := ""
		if health.Dispatch.State != "ok" {
			note = "training cannot be dispatched"
		}
		add("orchestrator", string(health.Dispatch.State), note, nil)
	}
	add("inference", string(servingHealth.Status), "", cmp.Or(errServing, refusedCredential(errModels)))
	for _, e := range []struct {
		name string
		err  error
	}{{"models", errModels}, {"approvals", errPending}} {
		// A service that is away is named once; this is for a missing or refused token.
		if e.err != nil && fault.From(e.err).Status != 0 {
			errs = append(errs, serviceError{e.name, e.err.Error()})
		}
	}
	if errHealth != nil && errServing != nil && describeNoAnswer(errHealth) == unreachable && describeNoAnswer(errServing) == unreachable {
		return fault.New("unreachable", "nothing answers: %v; %v", errHealth, errServing).
			WithHint("%s; or see the addresses: mlp config show", invocation.Current().StartHint())
	}
	refused := []inference.LoadFailure{}
	if servingHealth.Failed != nil {
		refused = *servingHealth.Failed
	}
	doc := map[string]any{"services": services, "models": models, "not_loaded": refused, "pending_approvals": pending, "errors": errs}
	gs := output.Grid{Columns: []string{"Service", "Status", "Note"}, Doc: doc}
	for _, s := range services {
		gs.Rows = append(gs.Rows, []any{s.Service, styledStatus(s.Status), s.Note})
	}
	gm := output.Grid{Title: "Served models", Columns: []string{"Model", "Version", "Status"}, Empty: "No model is served. Train one with: mlp retrain <model>"}
	for _, m := range models {
		gm.Rows = append(gm.Rows, []any{m.Model, m.Version, styledStatus(m.Status)})
	}
	if errModels != nil {
		gm.Empty = "Not known: " + errModels.Error()
	}
	gf := output.Grid{Title: "Not loaded", Columns: []string{"Model", "Alias", "Version", "Reason"}}
	for _, f := range refused {
		gf.Rows = append(gf.Rows, []any{f.Model, f.Alias, f.Version, f.Reason})
	}
	gp := output.Grid{Title: "Pending approvals", Columns: []string{"Model", "Commit", "Message", "Requested"}, Empty: "Nothing is pending."}
	for _, a := range pending {
		gp.Rows = append(gp.Rows, []any{a.ModelId, shortSHA(a.CommitSha), a.message(), output.Age(a.RequestedAt)})
	}
	if errPending != nil {
		gp.Empty = "Not known: " + errPending.Error()
	}
	grids := []output.Grid{gs, gm, gp}
	if len(refused) > 0 {
		grids = slices.Insert(grids, 2, gf)
	}
	return env.Printer().Print(grids...)
}
