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

// protocolVersion is the newest with a handshake. Later ones cache lists for as long as the server declares, so that
// its failure would go unnoticed.
const protocolVersion = "2025-11-25"

const (
	connectLimit = 20 * time.Second // from the start of a command to its list of tools
	refreshEvery = time.Minute
	firstPause   = time.Second // after the loss of a server; it doubles
	maxPause     = time.Minute
	maxCalls     = 8 // concurrent calls of one server
)

// server is one other server, which is connected again whenever it is lost.
type server struct {
	Server
	log   *slog.Logger
	pause time.Duration // the initial delay
	slots chan struct{} // one for each running call
	look  chan struct{} // requests a check of the connection
	left  string        // last logged message; only run uses it

	mu      sync.Mutex         // guards the fields below
	session *mcp.ClientSession // nil: the server is unavailable
	tools   []offered
	away    string // the reason
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

// guardPanic turns a panic into an error: no message of another server may crash the service.
func guardPanic[T any](fn func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return fn()
}

// within runs fn and abandons it once ctx ends: the library may block on writing to a server that reads nothing, and
// then ends with the link.
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

// serve connects and stays until the server is lost; the error gives the reason.
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
			// The session is lost already, or no longer needed. Close waits for its calls, which end when closed releases the
			// link.
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

// newClient returns a client that offers a server nothing: no roots, no sampling, no elicitation.
func newClient() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "cluster-assistant", Version: service.Version}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
}

// stay maintains a connected server until it is lost.
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

// refresh reads the list of tools; the server is available from then on.
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

// listTools reads the pages of the list and keeps the tools that may be used. An endless list is an error.
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

// lose records and logs the reason why the server is unavailable.
func (s *server) lose(ctx context.Context, why error) {
	if ctx.Err() != nil {
		return
	}
	text := operation.Quote(cleanLine(redact.Text(why.Error()), maxAbout))
	s.mu.Lock()
	same := s.away == text
	s.away = text
	s.mu.Unlock()
	if !same { // else it was logged before
		s.log.WarnContext(ctx, "another server is away; its tools are absent until it answers", slog.String("server", s.Name), slog.String("err", cleanLine(redact.Text(why.Error()), maxAbout)))
	}
}

// forget removes the tools.
func (s *server) forget() {
	s.mu.Lock()
	s.session, s.tools = nil, nil
	s.mu.Unlock()
}

// state returns the reason why the server is unavailable; empty: it is available.
func (s *server) state() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

// list returns the tools of an available server.
func (s *server) list() []offered {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// find returns the session and the tool of a call.
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
