package controltower_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The suite of recorded exchanges, clients/exchanges/*.json, which the clients in both
// languages must pass. README.md beside the files describes them.

const token = "recorded-exchange-token-0123456789"

type recorded struct {
	Name      string          `json:"name"`
	Client    clientSettings  `json:"client,omitzero"`
	Call      string          `json:"call"`
	Args      json.RawMessage `json:"args,omitempty"`
	Exchanges []rawExchange   `json:"exchanges"`
	Expect    expectation     `json:"expect"`
}

type clientSettings struct {
	BaseURL string        `json:"base_url,omitempty"` // {port} is replaced by the player's; default http://127.0.0.1:{port}
	Token   *string       `json:"token,omitempty"`
	Timeout float64       `json:"timeout,omitempty"` // seconds, default 20
	Retry   *retrySetting `json:"retry,omitempty"`
}

type retrySetting struct {
	MaxAttempts     int     `json:"max_attempts"`
	BaseDelay       float64 `json:"base_delay"`
	MaxDelay        float64 `json:"max_delay"`
	HonorRetryAfter bool    `json:"honor_retry_after"`
}

type rawExchange struct {
	Request  rawRequest `json:"request"`
	Response []piece    `json:"response"`
	// Then is the server's action after the response: "close" (the default), "hold" the
	// connection until the client leaves, or "drip" one byte every 20 ms until it does.
	Then string `json:"then,omitempty"`
}

type rawRequest struct {
	Line   string            `json:"line"`
	Fields map[string]string `json:"fields"` // all but Host and User-Agent
	Body   string            `json:"body,omitempty"`
}

// piece is some bytes of a response, written at once.
type piece struct {
	Text   string `json:"text,omitempty"`
	Hex    string `json:"hex,omitempty"`
	Repeat int    `json:"repeat,omitempty"` // times; 0 is once
	// Bytewise writes each byte separately.
	Bytewise bool `json:"bytewise,omitempty"`
}

// writes are the byte strings that the piece is written as, one write each.
func (p piece) writes() [][]byte {
	data := []byte(p.Text)
	if p.Hex != "" {
		data, _ = hex.DecodeString(p.Hex)
	}
	data = bytes.Repeat(data, max(p.Repeat, 1))
	if !p.Bytewise {
		return [][]byte{data}
	}
	var each [][]byte
	for i := range data {
		each = append(each, data[i:i+1])
	}
	return each
}

type expectation struct {
	Error         string          `json:"error,omitempty"` // config, transport, protocol, integrity or api
	StatusCode    int             `json:"status_code,omitempty"`
	Code          string          `json:"code,omitempty"`
	Retryable     bool            `json:"retryable,omitempty"`
	RetryAfter    *int            `json:"retry_after,omitempty"`
	Details       json.RawMessage `json:"details,omitempty"`
	RequestID     string          `json:"request_id,omitempty"`
	ContentDigest string          `json:"content_digest,omitempty"` // of the value, too, where it is a document
	Items         []string        `json:"items,omitempty"`          // ids on the page, or of the runs in turn
	NextCursor    *string         `json:"next_cursor,omitempty"`
	Limit         int             `json:"limit,omitempty"`
	Events        []int64         `json:"events,omitempty"`
	EndReason     string          `json:"end_reason,omitempty"`
	LastEventID   *int64          `json:"last_event_id,omitempty"`
}

func suiteFolder(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../../exchanges")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func loadSuite(t testing.TB) map[string][]recorded {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(suiteFolder(t), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded exchanges: %v; want len(files) != 0", err)
	}
	out := map[string][]recorded{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		var cases []recorded
		if err := dec.Decode(&cases); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".json")] = cases
	}
	return out
}

// player is a server that answers with recorded bytes and compares the requests.
type player struct {
	port     int
	done     sync.WaitGroup
	mu       sync.Mutex // guards the rest
	accepted int
	faults   []string
}

func playExchanges(t testing.TB, exchanges []rawExchange) *player {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &player{port: l.Addr().(*net.TCPAddr).Port}
	ctx, cancel := context.WithCancel(context.Background())
	p.done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			n := p.accepted
			p.accepted++
			p.mu.Unlock()
			if n >= len(exchanges) {
				p.fault("request %d came, where %d were expected", n+1, len(exchanges))
				_ = conn.Close()
				continue
			}
			p.done.Go(func() { p.serve(ctx, conn, exchanges[n]) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); cancel(); p.done.Wait() })
	return p
}

func (p *player) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// verify fails the test unless every recorded request was made, as recorded.
func (p *player) verify(t testing.TB, want int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		t.Error(f)
	}
	if p.accepted != want {
		t.Errorf("%d requests came, where %d were expected", p.accepted, want)
	}
}

func (p *player) serve(ctx context.Context, conn net.Conn, e rawExchange) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := p.compare(conn, e.Request); err != nil {
		p.fault("%v", err)
		return
	}
	for _, part := range e.Response {
		for _, data := range part.writes() {
			if _, err := conn.Write(data); err != nil {
				return // the client has seen enough
			}
		}
	}
	switch e.Then {
	case "hold":
		_, _ = io.Copy(io.Discard, conn)
	case "drip":
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := conn.Write([]byte("x")); err != nil {
				return
			}
		}
	}
}

func (p *player) compare(conn net.Conn, want rawRequest) error {
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil || line != want.Line+"\r\n" {
		return fmt.Errorf("request line %q, %v; expected %q", line, err, want.Line)
	}
	fields := map[string]string{}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the head of the request: %w", err)
		}
		if line == "\r\n" {
			break
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\r\n"), ": ")
		fields[name] = value
	}
	if host := fields["Host"]; host != fmt.Sprintf("127.0.0.1:%d", p.port) && host != fmt.Sprintf("localhost:%d", p.port) {
		return fmt.Errorf("Host %q", host)
	}
	if !strings.HasPrefix(fields["User-Agent"], "svc-control-tower-") {
		return fmt.Errorf("User-Agent %q", fields["User-Agent"])
	}
	delete(fields, "Host")
	delete(fields, "User-Agent")
	if fmt.Sprint(fields) != fmt.Sprint(want.Fields) {
		return fmt.Errorf("request fields %v; expected %v", fields, want.Fields)
	}
	size, _ := strconv.Atoi(fields["Content-Length"])
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil || string(body) != want.Body {
		return fmt.Errorf("request body %q, %v; expected %q", body, err, want.Body)
	}
	return nil
}
