package httpd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/service/listener"
)

// spareWorkers is the number of goroutines that wait for the next connection.
const spareWorkers = 32

// Handler answers one request by the writer's Answer or Stream before it returns.
type Handler func(w *Writer, r *Request)

// Server serves one listener. Its fields are set before Serve.
type Server struct {
	Handler        Handler
	RequestTimeout time.Duration           // for a head, a body, an answer, each
	MaxConns       int                     // open connections; at this number, one that waits for its peer is closed
	Refused        func(status int) Header // fields of the parser's own answers (400, 414, 431, 505); may be nil
	Log            *slog.Logger            // nil: nothing is logged

	large  chan struct{} // places of large heads
	work   chan *conn    // to goroutines that wait for the next connection
	spare  chan struct{} // places of those
	ending chan struct{} // closed when Serve's context ended

	mu    sync.Mutex // guards what follows
	conns map[*conn]struct{}
}

// Serve answers connections until ctx ends. Then it closes the listener and the
// connections that have not sent a whole head, and waits for the handlers, which
// [Server.Abort] hurries. It is called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.mu.Lock()
	if s.conns != nil {
		s.mu.Unlock()
		return errors.New("httpd: the server was started before")
	}
	s.conns = make(map[*conn]struct{})
	s.large = make(chan struct{}, largeHeads)
	s.work = make(chan *conn)
	s.spare = make(chan struct{}, spareWorkers)
	s.ending = make(chan struct{})
	s.mu.Unlock()
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}

	limited := listener.New(l, max(s.MaxConns, 1))
	var wg sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { _ = limited.Close() })
	err := s.accept(ctx, limited, &wg)
	stop()
	_ = limited.Close() // perhaps again: it is closed before the connections are
	close(s.ending)
	s.mu.Lock()
	for c := range s.conns {
		if c.state.CompareAndSwap(readingHead, statusLine) {
			_ = c.nc.Close()
		}
	}
	s.mu.Unlock()
	wg.Wait()
	return err
}

// Abort cuts every connection, in any state; handlers see their reads and writes
// fail.
func (s *Server) Abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.nc.Close()
	}
}

// accept starts connections until ctx ends, or the listener fails for good.
func (s *Server) accept(ctx context.Context, l *listener.Listener, wg *sync.WaitGroup) error {
	var pause time.Duration
	for {
		nc, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			// Out of descriptors or memory, or a peer that left the queue: all pass.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.Log.WarnContext(ctx, "accept failed", slog.Any("err", err), slog.Duration("pause", pause))
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return nil
			}
			continue
		}
		pause = 0
		c := &conn{nc: listener.Of(nc), server: s}
		c.request.Accepted = time.Now()
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		select {
		case s.work <- c:
		default:
			wg.Go(func() { s.worker(ctx, c) })
		}
	}
}

// worker serves connections, one after the other. The stack of a goroutine grows to
// the size that a request needs by being copied again and again; one that waits for
// the next connection keeps it.
func (s *Server) worker(ctx context.Context, c *conn) {
	for {
		s.serve(ctx, c)
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		select {
		case s.spare <- struct{}{}:
		default:
			return
		}
		select {
		case c = <-s.work:
			<-s.spare
		case <-s.ending:
			return
		}
	}
}

// serve is the life of a connection.
func (s *Server) serve(ctx context.Context, c *conn) {
	c.borrowed = buffers.Get().(*buffer)
	c.buf = c.borrowed.first
	c.request.c, c.writer.c = c, c
	c.request.Header = c.fields[:0]
	defer func() {
		if c.large {
			<-s.large
		}
		buffers.Put(c.borrowed)
	}()
	defer c.finish()
	status, ok := c.readHead()
	if !ok || !c.state.CompareAndSwap(readingHead, busy) {
		return
	}
	c.nc.Work()
	defer c.nc.Wait()
	if status != 0 {
		_ = c.writer.refuse(status) // best effort: there is no caller to report an error to
		return
	}
	defer func() {
		if fault := recover(); fault != nil {
			s.Log.ErrorContext(ctx, "handler panicked", slog.Any("fault", fault), slog.String("stack", string(debug.Stack())))
		}
	}()
	s.Handler(&c.writer, &c.request)
}
