package idp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/trust"
)

// Config locates the trust file.
type Config struct {
	// Path of the trust file; empty means that no provider is trusted.
	Path string
	// Environment is where its secrets come from; zero is the process's.
	Environment trust.Environment
	Log         *slog.Logger
	Now         func() time.Time
	// Timeout limits one call to a provider; zero is 5 s.
	Timeout time.Duration
}

// Registry are the trusted providers. Its methods may be called at once from many goroutines.
type Registry struct {
	cfg    Config
	client *http.Client
	state  atomic.Pointer[state]

	reading sync.Mutex // one reader of the file at a time
}

// state is the content of the trust file at one reading.
type state struct {
	providers []*Provider
	fault     error // why no provider is trusted
	digest    [sha256.Size]byte
	secrets   []string // files that are part of the digest
}

// New reads the trust file. A faulty one is no error: the service starts, trusts no provider and reports the fault in
// /readyz.
func New(cfg Config) (*Registry, error) {
	if err := service.RequireParts("idp.Registry", struct {
		Log *slog.Logger
		Now func() time.Time
	}{cfg.Log, cfg.Now}); err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = fetchTimeout
	}
	r := &Registry{cfg: cfg, client: newClient(cfg.Timeout)}
	r.state.Store(&state{})
	if cfg.Path != "" {
		r.reread(context.Background())
	}
	return r, nil
}

// pollEvery is the polling interval of the trust file. Its change must show within 2 s; file system notifications
// would miss a mount over it, as with configuration maps of clusters.
const pollEvery = time.Second

// Watch rereads the trust file when it changes, until ctx ends.
func (r *Registry) Watch(ctx context.Context) error {
	if r.cfg.Path == "" {
		<-ctx.Done()
		return nil
	}
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			r.client.CloseIdleConnections()
			return nil
		case <-t.C:
			r.reread(ctx)
		}
	}
}

// reread reads the trust file if it or a secret that it names has changed, or was faulty.
func (r *Registry) reread(ctx context.Context) {
	r.reading.Lock()
	defer r.reading.Unlock()
	before := r.state.Load()
	if before.fault == nil && before.digest != [sha256.Size]byte{} && r.digest(nil, before.secrets) == before.digest {
		return
	}
	file, src, err := trust.Load(r.cfg.Path, r.cfg.Environment)
	if err != nil {
		r.state.Store(&state{fault: err})
		if before.fault == nil || before.fault.Error() != err.Error() {
			r.cfg.Log.ErrorContext(ctx, "trust file refused; no identity provider is trusted until it is mended", slog.Any("err", err))
		}
		return
	}
	next := &state{secrets: file.SecretFiles, digest: r.digest(src, file.SecretFiles)}
	for i := range file.Providers {
		next.providers = append(next.providers, r.keep(before, &file.Providers[i]))
	}
	r.state.Store(next)
	r.cfg.Log.InfoContext(ctx, "trust file read", slog.Int("providers", len(next.providers)))
}

// keep returns the existing provider if its entry is unchanged, with its cached keys and verdicts, else a new one.
func (r *Registry) keep(before *state, t *trust.Provider) *Provider {
	for _, p := range before.providers {
		if reflect.DeepEqual(p.trust, t) {
			return p
		}
	}
	return newProvider(t, r.client, r.cfg.Now)
}

// digest returns the digest of the trust file, read now if src is nil, and of the files of its secrets.
func (r *Registry) digest(src []byte, secrets []string) [sha256.Size]byte {
	read := r.cfg.Environment.ReadFile
	if read == nil {
		read = trust.ReadFile
	}
	h := sha256.New()
	add := func(raw []byte, err error) { fmt.Fprintf(h, "%d %v %s", len(raw), err, raw) }
	if src != nil {
		add(src, nil)
	} else {
		add(read(r.cfg.Path, trust.MaxFile))
	}
	for _, path := range secrets {
		add(read(path, trust.MaxFile))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Check returns the readiness of the trust file: a faulty one refuses everyone of all providers, and its first fault
// is named with its line.
func (r *Registry) Check(context.Context) service.Check {
	fault := r.state.Load().fault
	if fault == nil {
		return service.Check{Status: service.OK}
	}
	var faults trust.Faults
	if errors.As(fault, &faults) {
		detail := faults[0].Error()
		if len(faults) > 1 {
			detail += fmt.Sprintf(" (and %d more; mlp auth validate lists them)", len(faults)-1)
		}
		return service.Check{Status: service.Fail, Detail: detail}
	}
	return service.Check{Status: service.Fail, Detail: fault.Error()}
}

// Errors of Provider.
var (
	// ErrUnknownProvider means that the trust file has no dashboard client of this name.
	ErrUnknownProvider = errors.New("no such identity provider")
	// ErrFaultyFile means that the trust file is refused.
	ErrFaultyFile = errors.New("the trust file is refused")
)

// Providers returns the providers that people can sign in with, in the order of the file.
func (r *Registry) Providers() []*Provider {
	var out []*Provider
	for _, p := range r.state.Load().providers {
		if p.trust.Dashboard != nil {
			out = append(out, p)
		}
	}
	return out
}

// Provider finds a provider that people can sign in at: ErrUnknownProvider or ErrFaultyFile.
func (r *Registry) Provider(name string) (*Provider, error) {
	s := r.state.Load()
	if s.fault != nil {
		return nil, fmt.Errorf("%w: %w", ErrFaultyFile, s.fault)
	}
	p := s.find(func(t *trust.Provider) bool { return t.Name == name && t.Dashboard != nil })
	if p == nil {
		return nil, ErrUnknownProvider
	}
	return p, nil
}

func (s *state) find(matches func(*trust.Provider) bool) *Provider {
	for _, p := range s.providers {
		if matches(p.trust) {
			return p
		}
	}
	return nil
}
