package postgres

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// answerGrace is the time beyond its own statement timeout that a server may
// stay silent.
const answerGrace = 5 * time.Second

// pingTimeout limits the ping of an idle connection before use. It runs for one
// dead connection after the other, so it is short.
const pingTimeout = 2 * time.Second

// limitIO makes connections by c fail when one read or write waits longer than
// limit. Without it a server that is stopped, or whose machine is gone, blocks
// its callers indefinitely.
func limitIO(c *pgx.ConnConfig, limit time.Duration) {
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &boundConn{Conn: conn, limit: limit}, nil
	}
}

// boundConn renews the deadline at each Read and Write. Deadlines that the
// driver sets, by which it ends a wait for a context, take precedence.
type boundConn struct {
	net.Conn
	limit time.Duration

	mu          sync.Mutex
	read, write bool // the driver has set this deadline
}

func (c *boundConn) Read(b []byte) (int, error) {
	if err := c.renew(&c.read, c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *boundConn) Write(b []byte) (int, error) {
	if err := c.renew(&c.write, c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *boundConn) renew(driver *bool, set func(time.Time) error) error {
	c.mu.Lock() // or the deadline of a context that ends now would be overwritten
	defer c.mu.Unlock()
	if *driver {
		return nil
	}
	return set(time.Now().Add(c.limit))
}

func (c *boundConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.write = !t.IsZero(), !t.IsZero()
	return c.Conn.SetDeadline(t)
}

func (c *boundConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = !t.IsZero()
	return c.Conn.SetReadDeadline(t)
}

func (c *boundConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = !t.IsZero()
	return c.Conn.SetWriteDeadline(t)
}
