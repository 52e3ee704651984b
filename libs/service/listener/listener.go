// Package listener holds the limits of every TCP port of the product: the number of connections, how long each may
// take, and which one is closed when a port is full.
//
// A port that is full does not turn newcomers away. It closes the connection that has waited longest for its peer: one
// that is silent, sends half a header, holds back a body or does not read its answer. A health probe or a sign-in needs
// its place for milliseconds, so it always finds one. Connections whose caller has shown a credential stay, up to a
// share of each caller and of each address; the rest is the reserve for those who have not been seen yet. A request that
// is being worked on is not given up either: newcomers wait for the next that ends. Those of an address that has its share
// do not wait, since the newcomers of all others would wait behind them: they are closed.
package listener

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

const (
	// mostConns is the largest number of connections of a port, fewestConns the smallest.
	mostConns, fewestConns = 2048, 64
	// filesShare limits one port to this fraction of the process' open files: bin/platform has a dozen ports.
	filesShare = 24
	// largestShare is the fraction for a port whose server requests more.
	largestShare = 4
	// fallbackFiles is used if the limit of open files cannot be read.
	fallbackFiles = 4096
)

// DefaultMax is the number of connections a port accepts unless its server sets another. The Go runtime has raised the
// limit of open files to what the system allows.
func DefaultMax() int { return min(max(maxFiles()/filesShare, fewestConns), mostConns) }

// maxFiles returns the limit of open files of this process.
func maxFiles() int {
	limit, ok := openFiles()
	if !ok {
		return fallbackFiles
	}
	return int(min(limit, 1<<30))
}

// Listener accepts connections within limits.
type Listener struct {
	net.Listener
	max     int
	private bool // bound to loopback

	lingering sync.WaitGroup
	done      chan struct{} // closed by Close
	room      chan struct{} // holds a token when a connection may be given up
	full      atomic.Bool   // Accept waits for room, or is about to

	mu        sync.Mutex // guards all below
	conns     map[*Conn]struct{}
	addresses map[string]*share
	kept      int
	callers   map[string]int // kept connections by caller
	closed    bool
}

// share counts the connections of one address.
type share struct{ conns, kept int }

// New returns a listener of at most that many connections, 0 for DefaultMax. A listener that has limits stays as it is.
func New(l net.Listener, most int) *Listener {
	if limited, ok := l.(*Listener); ok {
		return limited
	}
	if most <= 0 {
		most = DefaultMax()
	}
	most = min(most, max(maxFiles()/largestShare, fewestConns))
	return &Listener{
		Listener: l, max: most, private: isLoopback(l.Addr()), done: make(chan struct{}), room: make(chan struct{}, 1), conns: map[*Conn]struct{}{}, addresses: map[string]*share{}, callers: map[string]int{},
	}
}

// Listen listens on a TCP address for at most that many connections, 0 for DefaultMax; errors name who as the owner of
// the address.
func Listen(addr, who string, most int) (*Listener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return New(l, most), nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s cannot listen on %s: another process uses this port; stop it, or choose another address: %w", who, addr, syscall.EADDRINUSE)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s may not listen on %s; choose a port above 1023: %w", who, addr, syscall.EACCES)
	}
	return nil, fmt.Errorf("%s cannot listen on %s: %w", who, addr, err)
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &Conn{Conn: nc, l: l, address: addressKey(nc.RemoteAddr())}
		c.Wait()
		switch admitted, err := l.findRoom(c); {
		case err != nil:
			return nil, err
		case admitted:
			return c, nil
		}
	}
}

// findRoom waits until c is admitted, or closes it.
func (l *Listener) findRoom(c *Conn) (admitted bool, err error) {
	for {
		victim, ok := l.admit(c)
		if victim != nil {
			_ = victim.Conn.Close() // its server sees the end
		}
		if ok || victim == c {
			return ok, nil
		}
		// Every connection is in use; one of them will end.
		select {
		case <-l.room:
		case <-l.done:
			_ = c.Conn.Close()
			return false, net.ErrClosed
		}
	}
}

// noteRoom signals Accept that a connection may be given up now.
func (l *Listener) noteRoom() {
	if !l.full.Load() {
		return
	}
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// Close stops accepting, and ends what lingers.
func (l *Listener) Close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.done)
	}
	for c := range l.conns {
		if c.lingers {
			_ = c.Conn.Close()
		}
	}
	l.mu.Unlock()
	l.lingering.Wait()
	return err
}

// addressShare limits the connections of one address: half of all, or seven eighths from this machine, where many
// callers may be. A loopback port has no other callers, so there one address may have all.
func (l *Listener) addressShare(address string) int {
	switch {
	case l.private:
		return l.max
	case address == thisMachine:
		return l.max - l.max/8
	}
	return max(1, l.max/2)
}

// admit makes room for c and counts it. The caller closes the victim; ok is false if there is no room. The victim is c
// itself if its address has used its share and others may come.
func (l *Listener) admit(c *Conn) (victim *Conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full.Store(true) // set before the connections are checked: later changes are then signalled
	s := l.addresses[c.address]
	switch {
	case s != nil && s.conns >= l.addressShare(c.address):
		if victim = l.leastUseful(c.address); victim == nil && s.conns < l.max {
			l.full.Store(false)
			return c, false
		}
	case len(l.conns) >= l.max:
		victim = l.leastUseful("")
	default:
		l.full.Store(false)
		l.count(c)
		return nil, true
	}
	if victim == nil {
		return nil, false
	}
	l.full.Store(false)
	l.forget(victim)
	l.count(c)
	return victim, true
}

// count is called with mu held.
func (l *Listener) count(c *Conn) {
	l.conns[c] = struct{}{}
	s := l.addresses[c.address]
	if s == nil {
		s = &share{}
		l.addresses[c.address] = s
	}
	s.conns++
}

// forget is called with mu held. It does nothing the second time.
func (l *Listener) forget(c *Conn) {
	if _, known := l.conns[c]; !known {
		return
	}
	delete(l.conns, c)
	l.noteRoom()
	s := l.addresses[c.address]
	if s.conns--; s.conns == 0 {
		delete(l.addresses, c.address)
	}
	if !c.kept {
		return
	}
	s.kept--
	l.kept--
	if l.callers[c.caller]--; l.callers[c.caller] == 0 {
		delete(l.callers, c.caller)
	}
}

// leastUseful is the connection to give up, of one address or of all: the one that has waited longest for its peer, or
// else one of a caller that has more than its share. There is none if all others are being worked on. It is called with
// mu held.
func (l *Listener) leastUseful(address string) *Conn {
	var victim *Conn
	var rank usefulness
	var since int64
	for c := range l.conns {
		if address != "" && c.address != address {
			continue
		}
		r, s := c.usefulness()
		if r != useful && (victim == nil || r < rank || r == rank && s < since) {
			victim, rank, since = c, r, s
		}
	}
	return victim
}

// keep marks a connection whose caller is known, as far as the shares go.
func (l *Listener) keep(c *Conn, caller string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.conns[c]; !known || c.kept {
		return
	}
	s := l.addresses[c.address]
	c.excess = l.kept >= keptShare(l.max) || s.kept >= keptShare(l.addressShare(c.address)) || caller != "" && l.callers[caller] >= max(1, l.max/4)
	if c.excess {
		l.noteRoom()
		return
	}
	c.kept, c.caller = true, caller
	s.kept++
	l.kept++
	l.callers[caller]++
}

// keptShare leaves a quarter for callers that have not been seen yet.
func keptShare(conns int) int { return conns - max(1, conns/4) }
