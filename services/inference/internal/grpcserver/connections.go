package grpcserver

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/stats"

	"github.com/mlp-platform/platform/libs/service/listener"
)

// connectionKey holds the *connection of a call.
type connectionKey struct{}

// connections finds the connection of each call from what gRPC's stats handler reports. It has no other purpose.
type connections struct {
	patience time.Duration
	unread   atomic.Int64 // bytes of answers that wait for clients
	accepted sync.Map     // net.Conn by remote address, until gRPC has taken it over
	shares   sync.Map     // *atomic.Int64 of unread by principal, of which there are as many as credentials and people
}

// share returns the counter of unread bytes of one principal.
func (c *connections) share(principal string) *atomic.Int64 {
	share, _ := c.shares.LoadOrStore(principal, &atomic.Int64{})
	return share.(*atomic.Int64)
}

// TagConn implements stats.Handler.
func (c *connections) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	conn := &connection{all: &c.unread, patience: c.patience}
	if accepted, ok := c.accepted.LoadAndDelete(info.RemoteAddr.String()); ok {
		conn.net = accepted.(net.Conn)
		conn.port = listener.Of(conn.net)
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// TagRPC implements stats.Handler.
func (*connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// keep notes whose connection it is, so that it stays when the port is full.
func (c *connection) keep(caller string) {
	if c.port != nil {
		c.port.Keep(caller)
	}
}

// begin notes that a whole request has arrived. A connection without one counts as waiting for its client, whatever
// else that sends.
func (c *connection) begin() {
	if c != nil && c.port != nil && c.calls.Add(1) == 1 {
		c.port.Work()
	}
}

// done notes that a request was answered.
func (c *connection) done() {
	if c != nil && c.port != nil && c.calls.Add(-1) == 0 {
		c.port.Wait()
	}
}

// HandleRPC implements stats.Handler.
func (*connections) HandleRPC(context.Context, stats.RPCStats) {}

// HandleConn implements stats.Handler.
func (*connections) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, ended := s.(*stats.ConnEnd); ended {
		if conn, ok := ctx.Value(connectionKey{}).(*connection); ok {
			conn.end()
		}
	}
}

// accepting remembers the connections that it accepts.
type accepting struct {
	net.Listener
	connections *connections
}

// Accept implements net.Listener.
func (l accepting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		conn = &acceptedConn{Conn: conn, all: &l.connections.accepted}
		l.connections.accepted.Store(conn.RemoteAddr().String(), conn)
	}
	return conn, err
}

// acceptedConn is forgotten when it closes before gRPC has greeted it.
type acceptedConn struct {
	net.Conn
	all *sync.Map
}

// NetConn is the connection below, for listener.Of.
func (c *acceptedConn) NetConn() net.Conn { return c.Conn }

func (c *acceptedConn) Close() error {
	c.all.CompareAndDelete(c.RemoteAddr().String(), net.Conn(c)) // another may have its address already
	return c.Conn.Close()
}
