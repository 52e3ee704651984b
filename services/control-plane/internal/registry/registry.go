// Package registry is the control plane's view of the model repository: its models, the data sets each can be trained
// on, and the commit they were read from. Ids are upper-case here and lower-case in the tracker.
//
// A reading is immutable; a newer one replaces it as a whole, and a faulty one never replaces a sound one.
package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

// Registry returns the reading in force. It is safe for concurrent use.
type Registry struct {
	env string
	log *slog.Logger

	// onSwap is called after each swap by Reload or Take.
	onSwap func(context.Context) error

	mu      sync.Mutex // one reading at a time
	now     atomic.Pointer[reading]
	tracked atomic.Pointer[map[string]string] // the tracker's model names by id; nil until read
	looks   trackerLooks                      // for names that tracked does not have
	refused atomic.Pointer[string]            // the reason why the newest commit is not in force; nil if it is
	unread  atomic.Pointer[string]            // the reason why the folder in force could not be read again; nil if it was
}

// reading is the content of one folder at one time.
type reading struct {
	repo *modelrepo.Repo
	dir  string
	head string
	// taken is the commit given to Take; otherwise git is queried.
	taken string
	warn  string
}

func (r reading) sound() bool { return len(r.repo.Faults) == 0 && len(r.repo.Models) > 0 }

// Open reads the model repository in dir under the registry of env. An unreadable folder gives an empty registry with
// the reason in Warning: approvals and runs must stay readable without it. Faulty files of the first reading are left
// out, since there is no earlier state to keep. An empty dir is filled by Take. onSwap is called after each later swap;
// Reload and Take return its error.
func Open(dir, env string, onSwap func(context.Context) error, log *slog.Logger) *Registry {
	r := &Registry{env: env, onSwap: onSwap, log: log}
	first, err := r.read(dir, "")
	if err != nil {
		first.warn = err.Error()
	}
	r.now.Store(&first)
	return r
}

// read reads dir; head is its commit, or "" to query the git repository that contains it.
func (r *Registry) read(dir, head string) (reading, error) {
	out := reading{repo: &modelrepo.Repo{}, dir: dir, head: head, taken: head}
	if dir == "" {
		return out, errors.New("no model is known: MODELREPO_DIR is not set, and no commit of MODELREPO_GIT_URL was read")
	}
	repo, err := modelrepo.Open(dir, r.env)
	if err != nil {
		return out, err
	}
	out.repo = repo
	if head == "" {
		if out.head, err = modelrepo.HeadCommit(dir); err != nil && !errors.Is(err, modelrepo.ErrNoCommit) {
			r.log.Warn("commit of the model repository unknown", slog.Any("err", err))
		}
	}
	for _, f := range repo.Faults {
		r.log.Warn("model repository fault", slog.String("file", f.File), slog.Int("line", f.Line), slog.String("msg", f.Msg))
	}
	switch {
	case len(repo.Faults) > 0:
		f := repo.Faults[0]
		out.warn = fmt.Sprintf("%d faults; the first: %s:%d: %s", len(repo.Faults), f.File, f.Line, f.Msg)
	case len(repo.Models) == 0:
		out.warn = "the model repository declares no model"
	}
	return out, nil
}

// Refused is the reason why a reading is not in force.
type Refused struct {
	Commit string // of the reading; may be empty
	Reason string
	Faults []modelrepo.Fault
}

func (e *Refused) Error() string {
	what := "the folder as it is now"
	if e.Commit != "" {
		what = "commit " + e.Commit
	}
	return what + " is not in force: " + e.Reason
}

// Reload reads the folder in force again. A newer commit that was refused stays refused: reading the one in force says
// nothing about it. The error is a *Refused, or of onSwap.
func (r *Registry) Reload(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.now.Load()
	next, err := r.readSound(old.dir, old.taken)
	if err != nil {
		return r.refuse(&r.unread, err)
	}
	if old.taken == "" { // the folder is the newest state itself
		r.refused.Store(nil)
	}
	return r.swap(ctx, next)
}

// Take reads dir, which has the files of commit head, and puts it into force. The error is a *Refused, or of onSwap.
func (r *Registry) Take(ctx context.Context, dir, head string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := r.readSound(dir, head)
	if err != nil {
		return r.refuse(&r.refused, err)
	}
	r.refused.Store(nil)
	return r.swap(ctx, next)
}

// readSound is read, and refuses a faulty reading where the one in force is sound.
func (r *Registry) readSound(dir, head string) (reading, *Refused) {
	next, err := r.read(dir, head)
	if err == nil && !next.sound() && r.now.Load().sound() {
		err = errors.New(next.warn)
	}
	if err != nil {
		return next, &Refused{Commit: next.head, Reason: err.Error(), Faults: next.repo.Faults}
	}
	return next, nil
}

func (r *Registry) swap(ctx context.Context, next reading) error {
	r.now.Store(&next)
	r.unread.Store(nil)
	r.log.InfoContext(ctx, "model repository read", slog.String("commit", next.head), slog.Int("models", len(next.repo.Models)))
	if r.onSwap != nil {
		return r.onSwap(ctx)
	}
	return nil
}

// refuse records the reason in why, which is r.refused or r.unread.
func (r *Registry) refuse(why *atomic.Pointer[string], e *Refused) error {
	if len(r.Repo().Models) > 0 {
		e.Reason += "; the reading before stays"
	}
	reason := e.Error()
	why.Store(&reason)
	return e
}

// Unreadable records that a commit cannot be read at all. The error is a *Refused.
func (r *Registry) Unreadable(commit, reason string) error {
	return r.refuse(&r.refused, &Refused{Commit: commit, Reason: reason})
}

// Refuse records why the newest commit is not in force; the current reading stays. Empty: it is in force.
func (r *Registry) Refuse(why string) {
	if why == "" {
		r.refused.Store(nil)
		return
	}
	r.refused.Store(&why)
}

// Warning returns the reason why the registry is incomplete or outdated; empty if it is neither.
func (r *Registry) Warning() string {
	for _, why := range []*string{r.refused.Load(), r.unread.Load()} {
		if why != nil {
			return *why
		}
	}
	return r.now.Load().warn
}

// Head returns the commit of the reading; empty outside a git repository.
func (r *Registry) Head() string { return r.now.Load().head }

// Repo returns the reading in force. It does not change.
func (r *Registry) Repo() *modelrepo.Repo { return r.now.Load().repo }

// Models lists the models by id.
func (r *Registry) Models() []*modelrepo.Model {
	repo := r.Repo()
	out := make([]*modelrepo.Model, 0, len(repo.Models))
	for _, name := range repo.Names() {
		out = append(out, repo.Models[name])
	}
	return out
}

// Find returns the model of that name in any case.
func (r *Registry) Find(name string) (*modelrepo.Model, bool) { return r.Repo().Model(name) }

// Label returns the model id as a metric label: unknown ones share one.
func (r *Registry) Label(id string) string {
	if _, ok := r.Find(id); ok {
		return id
	}
	return "other"
}

// TrackerName returns the tracker's name of the model.
func (r *Registry) TrackerName(id string) string {
	if m, ok := r.Find(id); ok {
		return m.TrackerName()
	}
	if t, ok := r.FindExternal(id); ok {
		return t.TrackerName
	}
	return strings.ToLower(id)
}

// IDOf returns the id of the model with that name in the tracker.
func (r *Registry) IDOf(trackerName string) string {
	for _, m := range r.Repo().Models {
		if m.TrackerName() == trackerName {
			return m.ID()
		}
	}
	return strings.ToUpper(trackerName)
}

// Require is Find, with the problem 400 that lists the known models.
func (r *Registry) Require(name string) (*modelrepo.Model, error) {
	repo := r.Repo()
	if m, ok := repo.Model(name); ok {
		return m, nil
	}
	if err := r.requireDefinition(name); err != nil {
		return nil, err
	}
	known := strings.Join(repo.Names(), ", ")
	if known == "" {
		known = "none"
	}
	return nil, fault.UnknownModel.New(fmt.Sprintf("There is no model %q; known: %s.", ID(name), known))
}

// RequireDataset returns the data set's declared name; "" selects the default. The problem 400 lists the known ones.
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

// Backend returns the default backend of a model's data set.
func Backend(m *modelrepo.Model, d *modelrepo.ModelDataset) string {
	if d.Backend != "" {
		return d.Backend
	}
	return m.Backend
}

// name matches the allowed names of models and data sets.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// NameRule describes the names that ValidName accepts.
const NameRule = "must be 1 to 128 letters, digits, '.', '_' or '-', and begin with a letter or digit"

// ValidName reports whether s can be the name of a model or data set.
func ValidName(s string) bool { return name.MatchString(s) }

// ID returns the platform's form of a model's name.
func ID(name string) string { return strings.ToUpper(name) }
