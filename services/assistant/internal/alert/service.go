package alert

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/clustername"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Config holds the settings; a zero means the default.
type Config struct {
	TTL      time.Duration // how long a group is kept after its last notification, 30 days
	Workers  int           // investigations at once in this process, 2
	Lease    time.Duration // a worker without a heartbeat for this long counts as dead, 30 s
	Poll     time.Duration // how often a worker looks for what other replicas took in, 1 s
	Clusters clustername.Names
	// Patience is how long a notification waits for a cluster that does not answer, 10 min.
	Patience time.Duration
}

func (c Config) withDefaults() Config {
	for v, d := range map[*time.Duration]time.Duration{
		&c.TTL: 30 * 24 * time.Hour, &c.Lease: 30 * time.Second, &c.Poll: time.Second, &c.Patience: 10 * time.Minute,
	} {
		if *v <= 0 {
			*v = d
		}
	}
	if c.Workers <= 0 {
		c.Workers = 2
	}
	return c
}

// Deps holds what the service depends on.
type Deps struct {
	Store *store.Store
	Turns *turn.Service
	// Engine investigates; Tools look up what labels name.
	Engine   turn.Investigator
	Tools    turn.Tools
	Received func(outcome string) // counts a notification
	Now      func() time.Time
	Log      *slog.Logger
}

// Service takes in alerts and has them investigated.
type Service struct {
	Config
	Deps
	roused chan struct{} // has an element when something was taken in
}

// New returns a service, or an error that names the missing parts.
func New(c Config, d Deps) (*Service, error) {
	if err := service.RequireParts("alert", d); err != nil {
		return nil, err
	}
	return &Service{c.withDefaults(), d, make(chan struct{}, 1)}, nil
}

// rouse wakes a worker.
func (s *Service) rouse() {
	select {
	case s.roused <- struct{}{}:
	default:
	}
}

// Run investigates what was taken in until ctx ends, and forgets old groups.
func (s *Service) Run(ctx context.Context) error {
	var all errgroup.Group
	for range s.Workers {
		all.Go(func() error { s.serve(ctx); return nil })
	}
	all.Go(func() error { s.sweep(ctx); return nil })
	return all.Wait()
}

// sweep forgets old groups every hour.
func (s *Service) sweep(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if err := s.Forget(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "old groups of alerts could not be forgotten", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Forget deletes the groups that were not heard of for the TTL.
func (s *Service) Forget(ctx context.Context) error {
	return s.Store.DropAlertGroups(ctx, s.Now().Add(-s.TTL))
}
