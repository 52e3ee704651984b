package mlops

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// notServedAfter is how long serving may take to follow the alias.
const notServedAfter = time.Minute

// judge returns a model's health with its reasons. It follows the worst measure of drift, as alerts and the command
// line do, under every alias. If one of its sources is missing there is no verdict; the results of the others are
// among the reasons.
func (v *Views) judge(m registered, a answers) (api.RegistryRowHealth, []string) {
	warn, unsure := []string{}, []string{}
	for _, d := range a.drift[m.name] {
		if of := measuredVersion(&d); of > 0 && m.aliases[d.Alias] > 0 && of != m.aliases[d.Alias] {
			continue // of a version that has left the alias
		}
		switch d.Overall {
		case inference.WARNING, inference.CRITICAL, inference.CORRUPT:
			by := ""
			if d.DecidedBy != nil {
				by = " (" + *d.DecidedBy + ")"
			}
			warn = append(warn, fmt.Sprintf("drift %s under %s%s", d.Overall, d.Alias, by))
		}
	}
	switch live := a.drift[m.name].under(production); {
	case !a.ok.drift:
		unsure = append(unsure, "drift is not known: the source did not answer")
	case live == nil:
		unsure = append(unsure, "no drift is measured under Production")
	case measuredVersion(live) > 0 && m.aliases[production] > 0 && measuredVersion(live) != m.aliases[production]:
		unsure = append(unsure, fmt.Sprintf("version %d is not measured yet; drift %s under Production is that of version %d",
			m.aliases[production], live.Overall, measuredVersion(live)))
	case live.Overall != inference.OK:
		unsure = append(unsure, fmt.Sprintf("drift %s under Production", live.Overall))
	}
	if !a.ok.freshness {
		unsure = append(unsure, "freshness is not known: the source did not answer")
	} else if a.freshness[m.name] == controlplane.FreshnessStatusStale {
		warn = append(warn, "stale: the model repository has changed since the last training")
	}
	set := m.aliases[production]
	switch {
	case !a.ok.serving:
		unsure = append(unsure, "serving is not known: the source did not answer")
	case set == 0:
		unsure = append(unsure, "no version is in Production")
	case servedVersion(a.serving, m.name) != set:
		reason := fmt.Sprintf("Production is version %d, but %s", set, describeServed(a.serving, m.name))
		if v.serving.overdue(m.name) {
			warn = append(warn, reason)
		} else {
			unsure = append(unsure, reason+"; the change is recent")
		}
	}
	switch {
	case !a.ok.drift || !a.ok.serving || !a.ok.freshness:
		return api.RegistryRowHealthUnknown, append(unsure, warn...)
	case len(warn) > 0:
		return api.RegistryRowHealthWarn, warn
	case len(unsure) > 0:
		return api.RegistryRowHealthUnknown, unsure
	}
	return api.RegistryRowHealthOk, []string{}
}

// servedVersion returns the version that answers under Production; 0 without one.
func servedVersion(h inference.Health, name string) int {
	return versionNumber(h.Models[name].Aliases[production])
}

func describeServed(h inference.Health, name string) string {
	what := "none is served"
	if n := servedVersion(h, name); n > 0 {
		what = "version " + strconv.Itoa(n) + " is served"
	}
	if m, ok := h.Models[name]; ok && m.LastError != nil {
		return what + ": " + *m.LastError
	}
	if h.Failed != nil {
		for _, f := range *h.Failed {
			if modelName(f.Model) == name && aliasName(f.Alias) == production {
				return what + ": " + f.Reason
			}
		}
	}
	return what
}

// servingWatch records since when each model's Production alias and its served version differ: neither the tracker nor
// serving records when that began.
type servingWatch struct {
	clients clients
	now     func() time.Time

	mu    *sync.Mutex // guards since
	since map[string]mismatch
}

type mismatch struct {
	set, served int
	at          time.Time
}

func newServingWatch(u *upstream.Clients, now func() time.Time) servingWatch {
	return servingWatch{clients: clients{u}, now: now, mu: &sync.Mutex{}, since: map[string]mismatch{}}
}

// observe notes what differs now. A version that moves on starts the clock again.
func (w servingWatch) observe(all []registered, h inference.Health) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	seen := make(map[string]bool, len(w.since))
	for _, m := range all {
		set, served := m.aliases[production], servedVersion(h, m.name)
		if set == 0 || set == served {
			continue
		}
		seen[m.name] = true
		if old, ok := w.since[m.name]; !ok || old.set != set {
			w.since[m.name] = mismatch{set, served, now}
		}
	}
	for name := range w.since {
		if !seen[name] {
			delete(w.since, name)
		}
	}
}

// overdue reports whether a model has not been served as set for too long.
func (w servingWatch) overdue(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.since[name]
	return ok && w.now().Sub(m.at) >= notServedAfter
}

// watchEvery is the interval at which WatchServing polls when no one views the registry.
const watchEvery = 20 * time.Second

// WatchServing compares the configured with the served versions until ctx ends, so that the first person to look at
// the registry sees for how long they have differed.
func (v *Views) WatchServing(ctx context.Context) error {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		v.compareServing(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// compareServing changes nothing if either service gives no answer: the views report that.
func (v *Views) compareServing(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchEvery/2)
	defer cancel()
	h, err := v.serving.clients.servingHealth(ctx, caller.Caller{})
	if err != nil {
		return
	}
	all, err := v.serving.clients.listModels(ctx, caller.Caller{})
	if err != nil {
		return
	}
	v.serving.observe(all, h)
}
