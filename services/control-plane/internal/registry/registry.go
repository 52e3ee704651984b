// Package registry is the control plane's view of the model repository: which
// models there are, on which data sets each can be trained, and from which
// commit that was read. Ids are upper-case here and lower-case in the tracker.
package registry

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

// Registry is one reading of a model repository. It does not change.
type Registry struct {
	repo *modelrepo.Repo
	head string
	warn string
}

// Open reads the model repository in dir under the registry of env. A folder
// that cannot be read gives an empty registry whose State says why: approvals
// and runs must stay readable without it.
func Open(dir, env string, log *slog.Logger) *Registry {
	r := &Registry{repo: &modelrepo.Repo{}}
	if dir == "" {
		r.warn = "MODELREPO_DIR is not set; no model is known"
		return r
	}
	repo, err := modelrepo.Open(dir, env)
	if err != nil {
		r.warn = err.Error()
		return r
	}
	r.repo = repo
	if r.head, err = modelrepo.HeadCommit(dir); err != nil && !errors.Is(err, modelrepo.ErrNoCommit) {
		log.Warn("commit of the model repository unknown", slog.Any("err", err))
	}
	for _, f := range repo.Faults {
		log.Warn("model repository fault", slog.String("file", f.File), slog.Int("line", f.Line), slog.String("msg", f.Msg))
	}
	switch {
	case len(repo.Faults) > 0:
		f := repo.Faults[0]
		r.warn = fmt.Sprintf("%d faults; the first: %s:%d: %s", len(repo.Faults), f.File, f.Line, f.Msg)
	case len(repo.Models) == 0:
		r.warn = "the model repository declares no model"
	}
	return r
}

// Warning is why the registry is incomplete; empty when it is whole.
func (r *Registry) Warning() string { return r.warn }

// Head is the commit it was read from; empty outside of a git repository.
func (r *Registry) Head() string { return r.head }

// Models lists the models by id.
func (r *Registry) Models() []*modelrepo.Model {
	out := make([]*modelrepo.Model, 0, len(r.repo.Models))
	for _, name := range r.repo.Names() {
		out = append(out, r.repo.Models[name])
	}
	return out
}

// Readme is the model's README.md and its SHA-256 in hex; fs.ErrNotExist if there is none.
func (r *Registry) Readme(m *modelrepo.Model) ([]byte, string, error) { return r.repo.Readme(m) }

// Find gives the model of that name in any case.
func (r *Registry) Find(name string) (*modelrepo.Model, bool) { return r.repo.Model(name) }

// Label is the model id as a metric label: unknown ones share one.
func (r *Registry) Label(id string) string {
	if _, ok := r.Find(id); ok {
		return id
	}
	return "other"
}

// TrackerName is what the tracker calls the model.
func (r *Registry) TrackerName(id string) string {
	if m, ok := r.Find(id); ok {
		return m.TrackerName()
	}
	return strings.ToLower(id)
}

// IDOf is the model that the tracker calls so.
func (r *Registry) IDOf(trackerName string) string {
	for _, m := range r.repo.Models {
		if m.TrackerName() == trackerName {
			return m.ID()
		}
	}
	return strings.ToUpper(trackerName)
}

// Require is Find, with the problem 400 that lists the known models.
func (r *Registry) Require(name string) (*modelrepo.Model, error) {
	if m, ok := r.Find(name); ok {
		return m, nil
	}
	known := strings.Join(r.repo.Names(), ", ")
	if known == "" {
		known = "none"
	}
	return nil, fault.UnknownModel.New(fmt.Sprintf("There is no model %q; known: %s.", ID(name), known))
}

// RequireDataset is the data set's declared name; "" asks for the default. The
// problem 400 lists the known ones.
func (r *Registry) RequireDataset(m *modelrepo.Model, name string) (*modelrepo.ModelDataset, error) {
	d, ok := m.Dataset(name)
	switch {
	case ok:
		return d, nil
	case name == "":
		return nil, fault.NoDataset.New(fmt.Sprintf("Model %s declares no data set to train on.", m.ID()))
	}
	return nil, fault.UnknownDataset.New(fmt.Sprintf("Model %s has no data set %q; known: %s.", m.ID(), name, strings.Join(m.DatasetNames(), ", ")))
}

// Backend is where the data of a model's data set is read from by default.
func Backend(m *modelrepo.Model, d *modelrepo.ModelDataset) string {
	if d.Backend != "" {
		return d.Backend
	}
	return m.Backend
}

// name is what a model or data set can be called.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// NameRule says what ValidName accepts.
const NameRule = "must be 1 to 128 letters, digits, '.', '_' or '-', and begin with a letter or digit"

// ValidName says whether s can be the name of a model or data set.
func ValidName(s string) bool { return name.MatchString(s) }

// ID is the platform's form of a model's name.
func ID(name string) string { return strings.ToUpper(name) }
