package listener

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// Limits of reading from a connection after its last answer. One that is closed with unread bytes is reset, and a
// caller who is still writing would lose the answer that explains why.
const (
	lingerTime  = 5 * time.Second
	lingerBytes = 16 << 20
)

// thisMachine is the address of all callers on loopback, who have 16 million of them to choose from.
const thisMachine = "loopback"

// Conn is a connection of a Listener.
type Conn struct {
	net.Conn
	l       *Listener
	address string
	waiting atomic.Int64 // since when it waits for its peer, in Unix nanoseconds; 0: the server works on a request
	stopped atomic.Bool  // nothing more is read
	closing atomic.Bool

	// guarded by l.mu
	kept, excess bool // its caller is known; and has more than its share
	lingers      bool
	caller       string
}

// addressKey groups addresses by their likely owner: all of loopback, and a network of /64, count as one caller.
func addressKey(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || isLoopback(a) {
		return thisMachine
	}
	ip, _ := netip.AddrFromSlice(tcp.IP)
	if ip = ip.Unmap(); ip.Is6() {
		if network, err := ip.WithZone("").Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Work notes that a whole request has come, Wait that the next step is the peer's.
func (c *Conn) Work() { c.waiting.Store(0) }

// Wait is the opposite of Work.
func (c *Conn) Wait() {
	c.waiting.Store(time.Now().UnixNano())
	c.l.noteRoom()
}

// beginStep marks the connection as waiting for its peer until endStep gets the stamp. The stamp is 0 if it waits
// anyway.
func (c *Conn) beginStep() (stamp int64) {
	stamp = time.Now().UnixNano()
	if !c.waiting.CompareAndSwap(0, stamp) {
		return 0
	}
	c.l.noteRoom()
	return stamp
}

// endStep goes back to Work, unless the request has ended meanwhile: the connection then waits since another time.
func (c *Conn) endStep(stamp int64) { c.waiting.CompareAndSwap(stamp, 0) }

// usefulness orders connections by the cost of closing them.
type usefulness int

const (
	lingering usefulness = iota // its answer was sent
	waiting                     // for its peer
	excessive                   // of a caller that has more than its share
	useful                      // being worked on, or of a known caller
)

// usefulness also returns since when. It is called with l.mu held.
func (c *Conn) usefulness() (usefulness, int64) {
	since := c.waiting.Load()
	switch {
	case c.lingers:
		return lingering, since
	case c.kept:
		return useful, since
	case since > 0:
		return waiting, since
	case c.excess:
		return excessive, since
	}
	return useful, since
}

// Keep records that the caller has shown a credential. Its connection then stays when the port is full, up to the
// caller's share; an empty name has no separate share.
func (c *Conn) Keep(caller string) { c.l.keep(c, caller) }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if c.stopped.Load() {
		return 0, io.EOF
	}
	return c.Conn.Read(p)
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	defer c.endStep(c.beginStep())
	return c.Conn.Write(p)
}

// ReadFrom keeps the kernel's fast path for files.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	defer c.endStep(c.beginStep())
	return io.Copy(c.Conn, r)
}

// WriteBuffers writes them in one call, if the transport can.
func (c *Conn) WriteBuffers(b *net.Buffers) (int64, error) {
	defer c.endStep(c.beginStep())
	return b.WriteTo(c.Conn)
}

// CloseWrite ends the sending half, if the transport has one.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn. A connection that was stopped before its peer had sent all lingers, so that the peer
// reads its answer.
func (c *Conn) Close() error {
	if c.stopped.Load() && c.closing.CompareAndSwap(false, true) && c.l.linger(c) {
		return nil
	}
	c.l.mu.Lock()
	c.l.forget(c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// linger reads on for a while and then closes, unless the port is closed or has given the connection up.
func (l *Listener) linger(c *Conn) bool {
	l.mu.Lock()
	_, known := l.conns[c]
	known = known && !l.closed
	if known {
		c.lingers = true
		l.noteRoom()
		l.lingering.Add(1)
	}
	l.mu.Unlock()
	if !known {
		return false
	}
	go func() { // ends within lingerTime, or with the listener
		defer l.lingering.Done()
		if c.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes) // in any case the connection closes
		}
		_ = c.Close()
	}()
	return true
}

type contextKey struct{}

// WithConn is the context of a connection, for http.Server's ConnContext.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if conn := Of(c); conn != nil {
		return context.WithValue(ctx, contextKey{}, conn)
	}
	return ctx
}

// Of is the connection of a Listener below c, which may wrap it; nil if there is none.
func Of(c net.Conn) *Conn {
	for {
		switch v := c.(type) {
		case *Conn:
			return v
		case interface{ NetConn() net.Conn }:
			c = v.NetConn()
		default:
			return nil
		}
	}
}

// Keep is Conn.Keep for the connection that a request came by.
func Keep(ctx context.Context, caller string) {
	if c, ok := ctx.Value(contextKey{}).(*Conn); ok {
		c.Keep(caller)
	}
}
