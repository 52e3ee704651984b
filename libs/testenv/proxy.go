package testenv

import (
	"net"
	"sync"
	"testing"
)

// Proxy is a TCP proxy before a server, which can be made to hang: connections stay, new ones are
// accepted, and nothing is passed on any more, as with a stopped process or a lost machine.
type Proxy struct {
	ln     net.Listener
	target string
	wg     sync.WaitGroup

	mu    sync.Mutex // guards those below
	conns map[net.Conn]bool
	gate  chan struct{} // closed while bytes pass
	away  bool          // connections are ended at once
	done  bool
}

// NewProxy listens on a free loopback port and passes on to target, host:port, until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("testenv: proxy: %v; want a free port", err)
	}
	p := &Proxy{ln: ln, target: target, conns: map[net.Conn]bool{}, gate: make(chan struct{})}
	close(p.gate)
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is the proxy's address, host:port.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Hang stops passing bytes on.
func (p *Proxy) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
		p.gate = make(chan struct{})
	default: // it hangs already
	}
}

// Refuse ends all connections, and new ones at once, as while the server is down.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = true
	for c := range p.conns {
		c.Close()
	}
}

// Resume ends Hang and Refuse; data that Hang held back is sent.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = false
	select {
	case <-p.gate:
	default:
		close(p.gate)
	}
}

// Conns is the number of connections that clients have.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) / 2
}

func (p *Proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		if !p.track(client, server) {
			continue
		}
		p.wg.Go(func() { p.pass(server, client) })
		p.wg.Go(func() { p.pass(client, server) })
	}
}

// track adds a pair of connections, or closes it where none may be.
func (p *Proxy) track(pair ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range pair {
		if p.done || p.away {
			c.Close()
			continue
		}
		p.conns[c] = true
	}
	return !p.done && !p.away
}

// pass copies from one to the other until either ends, and then ends both.
func (p *Proxy) pass(to, from net.Conn) {
	defer func() {
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
		to.Close()
		from.Close()
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		gate := p.gate
		p.mu.Unlock()
		<-gate
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) close() {
	p.ln.Close()
	p.mu.Lock()
	p.done = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.Resume()
	p.wg.Wait()
}
