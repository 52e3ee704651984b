package listener

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// patience limits a test's wait for an expected event; atOnce limits the wait of a well-behaved caller.
const (
	patience = 20 * time.Second
	atOnce   = time.Second
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// startServer serves h on a port of that many connections and returns its address.
func startServer(t *testing.T, most int, h http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := Server(h, slog.New(slog.DiscardHandler), slog.LevelDebug)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(New(l, most)) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func dial(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// readAnswer returns the status of the answer on c and its body.
func readAnswer(t *testing.T, c net.Conn) (*http.Response, string) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

// hogs are callers that take a place and do nothing with it.
var hogs = map[string]string{
	"silent":               "",
	"half a header":        "GET / HTTP/1.1\r\nHost: x\r\nA: b",
	"body held back":       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
	"body read, held back": "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
	"chunk held back":      "POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
	"answer not read":      "GET /large HTTP/1.1\r\nHost: x\r\n\r\n",
	"idle":                 "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	"TLS":                  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"HTTP/2":               "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
}

// A port that is full of callers of any kind of idleness answers the next one at once, and continues to answer a caller
// who has shown a credential over its existing connection.
func TestHogsGiveWay(t *testing.T) {
	t.Parallel()
	const most = 64
	large := strings.Repeat("x", 8<<20)
	for name, text := range hogs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := startServer(t, most, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/known":
					Keep(r.Context(), "known")
				case "/read":
					_, _ = io.ReadAll(r.Body)
				case "/large":
					_, _ = io.WriteString(w, large)
				}
			})
			known := dial(t, addr, "GET /known HTTP/1.1\r\nHost: x\r\n\r\n")
			if res, _ := readAnswer(t, known); res.StatusCode != http.StatusOK {
				t.Fatalf("known caller: got %d, want 200", res.StatusCode)
			}
			for range 3 * most {
				dial(t, addr, text)
			}
			// One answer in time shows that no hog is waited for; a slow one may be due to a busy machine.
			took := time.Hour
			for try := 0; try < 5 && took > atOnce; try++ {
				begin := time.Now()
				if res, _ := readAnswer(t, dial(t, addr, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")); res.StatusCode != http.StatusOK {
					t.Errorf("newcomer: got %d, want 200", res.StatusCode)
				}
				if err := known.SetDeadline(time.Now().Add(patience)); err != nil { // the hogs may have taken all of its time
					t.Fatal(err)
				}
				if _, err := io.WriteString(known, "GET /known HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				if res, _ := readAnswer(t, known); res.StatusCode != http.StatusOK {
					t.Errorf("known caller among hogs: got %d, want 200", res.StatusCode)
				}
				took = time.Since(begin)
			}
			if took > atOnce {
				t.Errorf("answers took %s, the last of five tries; want at most %s", took, atOnce)
			}
		})
	}
}

// Known callers hold places that others cannot take, but none of them holds them all.
func TestKnownCallersHaveShares(t *testing.T) {
	t.Parallel()
	const most = 64
	enough := make(chan struct{})
	addr := startServer(t, most, func(w http.ResponseWriter, r *http.Request) {
		if caller := r.URL.Query().Get("caller"); caller != "" {
			Keep(r.Context(), caller)
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // a stream
			select {
			case <-enough:
			case <-r.Context().Done():
			}
		}
	})
	defer close(enough)
	stream := func(caller string) *bufio.Reader {
		r := bufio.NewReader(dial(t, addr, "GET /?caller="+caller+" HTTP/1.1\r\nHost: x\r\n\r\n"))
		if line, err := r.ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
			t.Fatalf("stream of %s: got %q, %v, want 200", caller, line, err)
		}
		return r
	}
	ended := func(r *bufio.Reader) chan struct{} {
		done := make(chan struct{})
		go func() { // ends with the test's connections
			_, _ = io.Copy(io.Discard, r)
			close(done)
		}()
		return done
	}
	modest := ended(stream("modest"))
	for range 3 * most {
		stream("greedy")
	}
	late := ended(stream("late"))
	if res, _ := readAnswer(t, dial(t, addr, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")); res.StatusCode != http.StatusOK {
		t.Errorf("newcomer: got %d, want 200", res.StatusCode)
	}
	select {
	case <-modest:
		t.Error("the stream of a modest caller ended for a greedy one")
	case <-late:
		t.Error("the stream of a late caller ended for a greedy one")
	default:
	}
}

// Requests that are being worked on are not given up: newcomers wait for the next that ends.
func TestWorkIsFinished(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	addr := startServer(t, 2, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/work" {
			entered <- struct{}{}
			<-leave
		}
	})
	var working []net.Conn
	for range 2 {
		working = append(working, dial(t, addr, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n"))
		<-entered
	}
	newcomer := dial(t, addr, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	leave <- struct{}{}
	if res, _ := readAnswer(t, newcomer); res.StatusCode != http.StatusOK {
		t.Errorf("newcomer: got %d, want 200", res.StatusCode)
	}
	leave <- struct{}{}
	answered := 0
	for _, c := range working {
		if line, _ := bufio.NewReader(c).ReadString('\n'); line == "HTTP/1.1 200 OK\r\n" {
			answered++
		}
	}
	if answered != 2 {
		t.Errorf("%d of 2 requests were answered, want all", answered)
	}
}

// An answer does not wait for a body that its handler does not read, and its connection is not used again unless the
// body has come.
func TestAnswersDoNotWaitForBodies(t *testing.T) {
	t.Parallel()
	addr := startServer(t, 8, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no credential", http.StatusUnauthorized) })
	head := "POST / HTTP/1.1\r\nHost: x\r\n"
	for name, c := range map[string]struct {
		request string
		closes  bool
	}{
		"no body comes":         {head + "Content-Length: 1000\r\n\r\n", true},
		"large body, none":      {head + "Content-Length: 100000000\r\n\r\n", true},
		"half comes":            {head + "Content-Length: 10\r\n\r\nhalf", true},
		"chunks, none":          {head + "Transfer-Encoding: chunked\r\n\r\n", true},
		"chunks, half":          {head + "Transfer-Encoding: chunked\r\n\r\n5\r\nha", true},
		"asked for, none":       {head + "Expect: 100-continue\r\nContent-Length: 10\r\n\r\n", true},
		"a request in the body": {head + "Content-Length: 1000\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"it has come":           {head + "Content-Length: 4\r\n\r\nbody", false},
		"chunks have come":      {head + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			conn := dial(t, addr, c.request)
			res, text := readAnswer(t, conn)
			if took := time.Since(begin); took > atOnce || res.StatusCode != http.StatusUnauthorized || text != "no credential\n" || res.Close != c.closes {
				t.Fatalf("got %d %q after %s, close %v; want 401 at once, close %v", res.StatusCode, text, took, res.Close, c.closes)
			}
			if c.closes {
				if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
					t.Errorf("after the answer came %q, %v; want the end", rest, err)
				}
				return
			}
			if _, err := io.WriteString(conn, c.request); err != nil {
				t.Fatal(err)
			}
			if res, _ := readAnswer(t, conn); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("second request: got %d, want 401", res.StatusCode)
			}
		})
	}
}

func TestAddressesAreGrouped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"127.0.0.1:1": thisMachine, "127.9.8.7:2": thisMachine, "[::1]:3": thisMachine, "[::ffff:127.0.0.1]:3": thisMachine,
		"10.1.2.3:4": "10.1.2.3", "[::ffff:10.1.2.3]:4": "10.1.2.3", "[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64", "[fe80::1%eth0]:6": "fe80::/64",
	} {
		a, err := net.ResolveTCPAddr("tcp", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := addressKey(a); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// One address of the network leaves half of a port to others, loopback an eighth.
func TestAddressesLeaveAReserve(t *testing.T) {
	t.Parallel()
	l := New(fakePort{}, 80)
	for address, want := range map[string]int{"10.0.0.1": 40, thisMachine: 70} {
		var first *Conn
		for range 100 {
			c := &Conn{Conn: fakeConn{}, l: l, address: address}
			c.Wait()
			if _, ok := l.admit(c); !ok {
				t.Fatalf("%s: a newcomer found no room", address)
			}
			if first == nil {
				first = c
			}
		}
		if got := l.addresses[address].conns; got != want {
			t.Errorf("%s holds %d, want %d", address, got, want)
		}
		if _, there := l.conns[first]; there {
			t.Errorf("%s: the oldest is still there, want it given up first", address)
		}
		for c := range l.conns {
			_ = c.Close()
		}
	}
	if len(l.conns) != 0 || len(l.addresses) != 0 || l.kept != 0 {
		t.Errorf("left: %d connections, %d addresses, %d kept; want none", len(l.conns), len(l.addresses), l.kept)
	}
}

// fakePort is bound to every address, which a test of this machine cannot be reached by.
type fakePort struct{ net.Listener }

func (fakePort) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero} }

type fakeConn struct{ net.Conn }

func (fakeConn) Close() error { return nil }

// queuePort accepts the connections put into it.
type queuePort struct {
	addr  string
	conns chan net.Conn
}

func (p queuePort) Addr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(p.addr)} }

func (p queuePort) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p queuePort) Close() error {
	close(p.conns)
	return nil
}

// addressedConn comes from an address and notes that it was closed.
type addressedConn struct {
	net.Conn
	from   string
	closed atomic.Bool
}

func (c *addressedConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.from)} }

func (c *addressedConn) Close() error {
	c.closed.Store(true)
	return nil
}

// acceptWorking accepts a connection from each address, on which the server then works.
func acceptWorking(t *testing.T, l *Listener, p queuePort, from ...string) (conns []*Conn) {
	t.Helper()
	for _, address := range from {
		p.conns <- &addressedConn{from: address}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, Of(c))
		Of(c).Work()
	}
	return conns
}

// An address whose connections are all in use delays no other: its newcomer is closed.
func TestBusyAddressKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	for name, others := range map[string][]string{"room for others": nil, "others give way": {"10.0.0.3", "10.0.0.4", "10.0.0.5"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := queuePort{"0.0.0.0", make(chan net.Conn, 2)}
				l := New(p, 6)
				acceptWorking(t, l, p, "10.0.0.1", "10.0.0.1", "10.0.0.1")
				for _, c := range acceptWorking(t, l, p, others...) {
					c.Wait()
				}
				busy, other := &addressedConn{from: "10.0.0.1"}, &addressedConn{from: "10.0.0.2"}
				p.conns <- busy
				p.conns <- other
				var got net.Conn
				go func() { got, _ = l.Accept() }()
				synctest.Wait()
				if got == nil || got.RemoteAddr().String() != other.RemoteAddr().String() || !busy.closed.Load() || other.closed.Load() {
					t.Errorf("accepted %v, closed %v and %v; want the caller of the other address alone", got, busy.closed.Load(), other.closed.Load())
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A caller that turns out to have more than its share is closed for a newcomer that waits.
func TestExcessGivesWayToWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := queuePort{"127.0.0.1", make(chan net.Conn, 2)}
		l := New(p, 2)
		working := acceptWorking(t, l, p, "127.0.0.1", "127.0.0.1")
		working[0].Keep("first")
		p.conns <- &addressedConn{from: "127.0.0.1"}
		var got net.Conn
		go func() { got, _ = l.Accept() }()
		synctest.Wait()
		if got != nil {
			t.Error("a request that is being worked on was given up")
		}
		working[1].Keep("second")
		synctest.Wait()
		if got == nil {
			t.Error("the newcomer still waits, want it in the place of the one above the share")
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// blockedConn blocks in Write until it is released.
type blockedConn struct {
	addressedConn
	entered, leave chan struct{}
}

func (c *blockedConn) Write(p []byte) (int, error) {
	close(c.entered)
	<-c.leave
	return len(p), nil
}

// A connection whose last request ends while it still writes waits for its peer from then on, and may be closed.
func TestWriteThatOutlivesItsRequestWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		during func(*Conn)
		want   usefulness
	}{
		"the request goes on": {func(*Conn) {}, useful},
		"the request ends":    {(*Conn).Wait, waiting},
		"another one comes":   {func(c *Conn) { c.Wait(); c.Work() }, useful},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := &blockedConn{entered: make(chan struct{}), leave: make(chan struct{})}
			conn := &Conn{Conn: peer, l: New(fakePort{}, 8), address: "10.0.0.1"}
			written := make(chan error, 1)
			go func() {
				_, err := conn.Write([]byte("x"))
				written <- err
			}()
			<-peer.entered
			if got, _ := conn.usefulness(); got != waiting {
				t.Errorf("while it writes: got %d, want that it waits", got)
			}
			c.during(conn)
			close(peer.leave)
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			if got, _ := conn.usefulness(); got != c.want {
				t.Errorf("after the write: got %d, want %d", got, c.want)
			}
		})
	}
}
