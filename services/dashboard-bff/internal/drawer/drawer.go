// Package drawer relays conversations with the cluster assistant: questions, their streams, and the decisions of
// admins about changes that it proposes.
package drawer

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// Recorder keeps audit facts.
type Recorder interface {
	// Record keeps the fact durably, or fails within ctx.
	Record(ctx context.Context, who caller.Caller, fact announce.Fact) error
}

// Config of New.
type Config struct {
	Assistant *assistant.Clients
	Recorder  Recorder
	// Enabled reports whether the kill switch copilotDrawer is on for the caller. It answers from memory.
	Enabled func(context.Context, caller.Caller) bool
	// FollowSession returns a context that ends, with a cause that gives the reason, when the caller's session does.
	FollowSession func(context.Context, caller.Caller) (context.Context, context.CancelFunc)
	// Secret is the JWT secret; session prefixes are derived from a key of it.
	Secret service.Secret
	Log    *slog.Logger
	Limits Limits
}

// Limits of a call; a zero one has the default.
type Limits struct {
	Answer time.Duration // until the header of a response; 10 s
	Idle   time.Duration // between two bytes of a stream, in which the assistant sends a heartbeat each 15 s; 45 s
	Whole  time.Duration // of a stream; 30 min
	Write  time.Duration // of one frame to the browser; 10 s
}

func (l *Limits) setDefaults() {
	for _, d := range []struct {
		limit    *time.Duration
		standard time.Duration
	}{{&l.Answer, 10 * time.Second}, {&l.Idle, 45 * time.Second}, {&l.Whole, 30 * time.Minute}, {&l.Write, 10 * time.Second}} {
		if *d.limit <= 0 {
			*d.limit = d.standard
		}
	}
}

// Drawer relays.
type Drawer struct {
	Config
	prefixes assistant.SessionNames
	drain    context.Context // ends with Close
	endDrain context.CancelFunc
}

// New refuses a missing part.
func New(cfg Config) (*Drawer, error) {
	if err := service.RequireParts("drawer", cfg); err != nil {
		return nil, err
	}
	cfg.Limits.setDefaults()
	prefixes, err := assistant.NewSessionNames(cfg.Secret, "dashboard drawer session")
	if err != nil {
		return nil, err
	}
	d := &Drawer{Config: cfg, prefixes: prefixes}
	d.drain, d.endDrain = context.WithCancel(context.Background())
	return d, nil
}

// Close ends the open streams, and any that begin later, with an explanation: an answer may take longer than a process
// has to shut down. The assistant continues, and the browser reconnects to another replica.
func (d *Drawer) Close() { d.endDrain() }

// keyOf returns the key for a caller's role at the assistant.
func keyOf(who caller.Caller) assistant.Key {
	if who.Role.Covers(caller.Admin) {
		return assistant.Operator
	}
	return assistant.ReadOnly
}

// sessionPrefix begins every session of a person. All sessions belong to two keys at the assistant, so it is this
// prefix that keeps people apart.
func (d *Drawer) sessionPrefix(who caller.Caller) string {
	return "dd-" + d.prefixes.Name(who.Tenant, who.Subject) + "-"
}

func (d *Drawer) newSession(who caller.Caller) string { return d.sessionPrefix(who) + uuid.NewString() }

var sessionRest = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// checkSession returns a 404 for a session that is not the caller's: another's looks absent.
func (d *Drawer) checkSession(who caller.Caller, session string) error {
	rest, own := strings.CutPrefix(session, d.sessionPrefix(who))
	if !own || !sessionRest.MatchString(rest) {
		return fault.NotFound.New("There is no such conversation; begin one by asking without a session.")
	}
	return nil
}
