package stream_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gosse "github.com/tmaxmax/go-sse"
)

const (
	benchClients = 1000
	benchRounds  = 7 // of each server, in turn; the medians of the ratios count
	benchRound   = 700 * time.Millisecond
	mark         = '#' // once in each event
	// benchFiles are both ends of the connections to three servers, and one of those to nchan.
	benchFiles = (3*2+1)*benchClients + 200
)

// fanOut is a server of events; publish gives one event to all its clients.
type fanOut struct {
	name    string
	addr    string
	publish func(n uint64)
	readers []*benchReader
}

// benchReader counts the events that one connection receives.
type benchReader struct {
	received atomic.Uint64
	awaited  atomic.Uint64 // 0: no waiter
	reached  chan struct{} // signalled once when received reaches awaited
	_        [40]byte      // a cache line each
}

func (r *benchReader) read(conn net.Conn) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := conn.Read(buffer)
		received := r.received.Add(uint64(bytes.Count(buffer[:n], []byte{mark})))
		if awaited := r.awaited.Load(); awaited != 0 && received >= awaited && r.awaited.CompareAndSwap(awaited, 0) {
			r.reached <- struct{}{}
		}
		if err != nil {
			return
		}
	}
}

// BenchmarkFanOut reports deliveries a second to 1,000 clients over TCP and their ratio to a bare loop that writes the
// encoded event to each connection of net/http, to go-sse, and to nchan. In lockstep, the next event is sent once all
// clients have received the last one; in pipelined one, in flood 63 more are in flight at the same time. The CPU
// ratios compare the time of both cores for one delivery, clients included; 2 is half of it.
//
// The first three send the same bytes over the same net/http server, and flush each event in lockstep. The stream does
// more work: it parses the event and checks its tenant, matches it with each client's channels, keeps it for clients
// that resume, queues at most 256 events per client and counts lost ones, sets write deadlines and writes keep-alives.
// The bare loop stops at the first client that does not read; so does go-sse, whose publisher then waits for ever, and
// which has no deadlines or keep-alives either. Where more than one event is in flight, the stream writes all that is
// queued for a client at once; these two write and flush each event.
//
// nchan is a module of nginx in separate processes, whose CPU time is not measured here.
// Its publisher sends a request for each event and waits for the answer.
func BenchmarkFanOut(b *testing.B) {
	raiseFileLimit(b)
	servers := []*fanOut{startOurs(b), startBare(b), startGoSSE(b)}
	if nchan := startNchan(b); nchan != nil {
		servers = append(servers, nchan)
	}
	for _, s := range servers {
		s.connect(b)
	}
	published := make([]uint64, len(servers))
	for _, mode := range []struct {
		name   string
		window uint64
	}{{"lockstep", 1}, {"pipelined", 2}, {"flood", 64}} {
		b.Run(mode.name, func(b *testing.B) {
			rates, costs := make([][]float64, len(servers)), make([][]float64, len(servers))
			for b.Loop() {
				for range benchRounds {
					for i, s := range servers {
						began, first, cpu := time.Now(), published[i], cpuTime(b)
						for time.Since(began) < benchRound {
							published[i]++
							s.publish(published[i])
							s.await(b, published[i], mode.window)
						}
						s.await(b, published[i], 1)
						deliveries := float64((published[i] - first) * benchClients)
						rates[i] = append(rates[i], deliveries/time.Since(began).Seconds())
						costs[i] = append(costs[i], float64(cpuTime(b)-cpu)/deliveries)
					}
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(rates[0]), "deliveries/s")
			b.ReportMetric(median(ratios(rates[0], rates[1])), "x-bare")
			b.ReportMetric(median(ratios(rates[0], rates[2])), "x-go-sse")
			if len(servers) > 3 {
				b.ReportMetric(median(ratios(rates[0], rates[3])), "x-nchan")
			}
			b.ReportMetric(median(ratios(costs[1], costs[0])), "x-bare-cpu")
			b.ReportMetric(median(ratios(costs[2], costs[0])), "x-go-sse-cpu")
		})
	}
}

// cpuTime returns the CPU time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

// raiseFileLimit allows both ends of all connections.
func raiseFileLimit(b *testing.B) {
	b.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		b.Fatal(err)
	}
	if limit.Cur = limit.Max; limit.Max < benchFiles {
		b.Skipf("%d files may be open, %d are needed", limit.Max, benchFiles)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		b.Fatal(err)
	}
}

// connect opens the clients and waits until each has received an event.
func (s *fanOut) connect(b *testing.B) {
	b.Helper()
	for i := range benchClients {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET /api/v1/stream HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nTenant: acme\r\nSession: %d\r\n\r\n", s.addr, i%10); err != nil {
			b.Fatal(err)
		}
		r := &benchReader{reached: make(chan struct{}, 1)}
		s.readers = append(s.readers, r)
		head := make([]byte, 64)
		if n, err := conn.Read(head); err != nil || !strings.HasPrefix(string(head[:n]), "HTTP/1.1 200") {
			b.Fatalf("%s: %q, %v; want status 200", s.name, head[:n], err)
		}
		var reading sync.WaitGroup
		reading.Go(func() { r.read(conn) })
		b.Cleanup(func() {
			_ = conn.Close()
			reading.Wait()
		})
	}
}

// await waits until fewer than window of the published events are missing at the slowest client.
func (s *fanOut) await(b *testing.B, published, window uint64) {
	for _, r := range s.readers {
		if r.received.Load()+window > published {
			continue
		}
		awaited := published - window + 1
		r.awaited.Store(awaited)
		if r.received.Load() >= awaited && r.awaited.CompareAndSwap(awaited, 0) {
			continue // reached before the reader saw the waiter
		}
		select {
		case <-r.reached:
		case <-time.After(patience):
			b.Fatalf("%s: a client has %d of %d events", s.name, r.received.Load(), published)
		}
	}
}

// benchData is a usual event's.
const benchData = `{"model":"JPCP","run_id":"0b6f2c1a5d8e4f70","deployment":"jpcp-train","dataset":"fugaku","mark":"#"}`

// sentData is that data as clients receive it.
var sentData = benchData[:len(benchData)-1] +
	`,"_event":{"id":"01890a5d-ac96-774b-bcce-b302099a8057","time":"2026-01-02T03:04:05.000006Z","actor":"local:admin"},"_dropped":0}`

func startOurs(b *testing.B) *fanOut {
	r := startOffline(b)
	subject, body := envelope("acme", "job.started", 1)
	body = bytes.Replace(body, []byte(`{"n":1}`), []byte(benchData), 1)
	return &fanOut{
		name: "stream", addr: strings.TrimSuffix(strings.TrimPrefix(r.url, "http://"), "/api/v1/stream"),
		publish: func(n uint64) {
			if err := r.stream.Inject(subject, body, n); err != nil {
				b.Fatal(err)
			}
		},
	}
}

// startBare writes the same bytes in turn to every connection.
func startBare(b *testing.B) *fanOut {
	frame := []byte("id: 4711\nevent: job.started\ndata: " + sentData + "\n\n")
	type connection struct {
		w   io.Writer
		ctl *http.ResponseController
	}
	var mu sync.Mutex // guards connections
	var connections []connection
	addr := serve(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctl := http.NewResponseController(w)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		mu.Lock()
		connections = append(connections, connection{w, ctl})
		err := ctl.Flush()
		mu.Unlock()
		if err == nil {
			<-r.Context().Done()
		}
		mu.Lock()
		defer mu.Unlock()
		connections = nil // the benchmark is over
	}))
	return &fanOut{
		name: "bare", addr: addr,
		publish: func(uint64) {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range connections {
				if _, err := c.w.Write(frame); err != nil {
					b.Fatal(err)
				}
				if err := c.ctl.Flush(); err != nil {
					b.Fatal(err)
				}
			}
		},
	}
}

func startGoSSE(b *testing.B) *fanOut {
	s := &gosse.Server{Logger: func(*http.Request) *slog.Logger { return nil }}
	b.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return &fanOut{
		name: "go-sse",
		// Its handler sends the header with the first event; connect wants it at once.
		addr: serve(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			if err := http.NewResponseController(w).Flush(); err == nil {
				s.ServeHTTP(w, r)
			}
		})),
		publish: func(n uint64) {
			m := &gosse.Message{ID: gosse.ID(fmt.Sprint(n)), Type: gosse.Type("job.started")}
			m.AppendData(sentData)
			if err := s.Publish(m); err != nil {
				b.Fatal(err)
			}
		},
	}
}

func serve(b *testing.B, h http.Handler) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { // ends with the cleanup
		defer close(done)
		_ = srv.Serve(ln)
	}()
	b.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return ln.Addr().String()
}
