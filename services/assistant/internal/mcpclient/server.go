package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// protocolVersion is the newest with a handshake. Later ones keep lists for as long as the server says, and would not show
// that it is away.
const protocolVersion = "2025-11-25"

const (
	connectLimit = 20 * time.Second // from the start of a command to its list of tools
	refreshEvery = time.Minute
	firstPause   = time.Second // after a server was lost; it doubles
	maxPause     = time.Minute
	maxCalls     = 8 // that one server answers at a time
)

// server is one other server: it is connected to, lost, and connected to again.
type server struct {
	Server
	log   *slog.Logger
	pause time.Duration // the first one
	slots chan struct{} // one for each call that runs
	look  chan struct{} // asks for a look whether the server is there
	left  string        // what was logged last; only run uses it

	mu      sync.Mutex         // guards what follows
	session *mcp.ClientSession // nil: the server is away
	tools   []offered
	away    string // why
}

func newServer(c Server, log *slog.Logger, pause time.Duration) *server {
	return &server{Server: c, log: log, pause: pause, slots: make(chan struct{}, maxCalls), look: make(chan struct{}, 1), away: "it was not reached yet"}
}

// run keeps the server connected until ctx ends.
func (s *server) run(ctx context.Context) {
	pause := s.pause
	for {
		began := time.Now()
		_, why := guardPanic(func() (struct{}, error) { return struct{}{}, s.serve(ctx) })
		s.lose(ctx, why)
		if time.Since(began) > 2*maxPause {
			pause = s.pause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause + rand.N(pause/4+1)):
		}
		pause = min(2*pause, maxPause)
	}
}

// guardPanic makes an error of a panic: what another server sends must not end the service.
func guardPanic[T any](fn func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return fn()
}

// within runs fn and leaves it alone once ctx ends: the library may write to a server that reads nothing, and then ends
// with the link.
func within[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := guardPanic(fn)
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// serve connects and stays until the server is lost; the error says why.
func (s *server) serve(ctx context.Context) (err error) {
	l, err := s.dial()
	if err != nil {
		return err
	}
	var session *mcp.ClientSession
	defer func() {
		s.forget()
		if session != nil {
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
			defer cancel()
			// It is lost already, or not needed any more. It waits for its calls, which end with what closed ends.
			_, _ = within(closing, func() (struct{}, error) { return struct{}{}, session.Close() })
		}
		l.closed()
		if err != nil && l.said != nil {
			if text := cleanLine(redact.Text(l.said()), maxAbout); text != "" {
				err = fmt.Errorf("%w; its stderr ends with %q", err, text)
			}
		}
	}()
	limited, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	session, err = within(limited, func() (*mcp.ClientSession, error) {
		return newClient().Connect(limited, l.transport, &mcp.ClientSessionOptions{ProtocolVersion: protocolVersion})
	})
	if err != nil {
		return err
	}
	if err := s.refresh(limited, session); err != nil {
		return err
	}
	return s.stay(ctx, session)
}

// newClient makes a client that offers a server nothing: no roots, no sampling, no elicitation.
func newClient() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "cluster-assistant", Version: service.Version}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
}

// stay looks after a connected server until it is lost.
func (s *server) stay(ctx context.Context, session *mcp.ClientSession) error {
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }() // ends with the session
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			if err == nil {
				err = errors.New("the server ended the connection")
			}
			return err
		case <-s.look:
		case <-tick.C:
		}
		limited, cancel := context.WithTimeout(ctx, connectLimit)
		err := s.refresh(limited, session)
		cancel()
		if err != nil {
			return err
		}
	}
}

// refresh reads the list of tools; the server is there from then on.
func (s *server) refresh(ctx context.Context, session *mcp.ClientSession) error {
	list, err := within(ctx, func() ([]listed, error) { return s.listTools(ctx, session) })
	if err != nil {
		return err
	}
	tools := s.offer(list)
	s.mu.Lock()
	was := s.session
	s.session, s.tools, s.away = session, tools, ""
	s.mu.Unlock()
	if was == nil {
		s.log.InfoContext(ctx, "another server is connected", slog.String("server", s.Name), slog.Int("tools", len(tools)))
	}
	return nil
}

// listTools reads the pages of the list and keeps the tools that may be used. A list without an end is an error.
func (s *server) listTools(ctx context.Context, session *mcp.ClientSession) (all []listed, err error) {
	cursor, seen, size := "", 0, 0
	for range maxPages {
		page, err := session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			if t == nil || !s.allows(t.Name) {
				continue
			}
			l := s.keep(t)
			size += l.size()
			all = append(all, l)
		}
		if seen += len(page.Tools); seen > maxListed || size > maxList {
			return nil, fmt.Errorf("it lists over %d tools or %d bytes", maxListed, maxList)
		}
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("its list of tools has over %d pages", maxPages)
}

// lose notes and logs why the server is away.
func (s *server) lose(ctx context.Context, why error) {
	if ctx.Err() != nil {
		return
	}
	text := operation.Quote(cleanLine(redact.Text(why.Error()), maxAbout))
	s.mu.Lock()
	same := s.away == text
	s.away = text
	s.mu.Unlock()
	if !same { // else it was said
		s.log.WarnContext(ctx, "another server is away; its tools are absent until it answers", slog.String("server", s.Name), slog.String("err", cleanLine(redact.Text(why.Error()), maxAbout)))
	}
}

// forget takes the tools away.
func (s *server) forget() {
	s.mu.Lock()
	s.session, s.tools = nil, nil
	s.mu.Unlock()
}

// state is why the server is away; empty: it is there.
func (s *server) state() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

// list gives the tools of a server that is there.
func (s *server) list() []offered {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// find gives the session and the tool of a call.
func (s *server) find(tool string) (*mcp.ClientSession, offered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return nil, offered{}, operation.Refuse(operation.Unavailable, "server", "The server %s does not answer now.", s.Name)
	}
	for _, t := range s.tools {
		if t.Tool.Tool == tool {
			return s.session, t, nil
		}
	}
	return nil, offered{}, operation.Refuse(operation.NotFound, "tool", "The server %s has no tool %s that may be used.", s.Name, operation.Quote(tool))
}
