package httpd_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

// makeLine makes a line of size bytes, its terminator counted, around a filling.
func makeLine(before, after string, size int) string {
	return before + strings.Repeat("x", size-len(before)-len(after)) + after
}

func makeFields(n int) string { return strings.Repeat("A: b\r\n", n) }

func TestParserLevelAnswers(t *testing.T) {
	t.Parallel()
	refused := func(status int) httpd.Header {
		return httpd.Header{{Name: "X-Refused", Value: fmt.Sprint(status)}}
	}
	addr := startServer(t, &httpd.Server{Handler: echoRequest, Refused: refused})
	const get = "GET / HTTP/1.1\r\n"
	id := regexp.MustCompile(`^req_[0-9a-f]{32}$`)
	for _, row := range []struct {
		name, request string
		status        int
	}{
		{"request line at the bound", makeLine("GET /", " HTTP/1.1\r\n", 65536) + "\r\n", 200},
		{"request line one past it", makeLine("GET /", " HTTP/1.1\r\n", 65537) + "\r\n", 414},
		{"request line at the bound, line feed", makeLine("GET /", " HTTP/1.1\n", 65536) + "\n", 200},
		{"request line one past it, line feed", makeLine("GET /", " HTTP/1.1\n", 65537) + "\n", 414},
		{"request line without end", "GET /" + strings.Repeat("x", 300000), 414},
		{"header line at the bound", get + makeLine("A: ", "\r\n", 65536) + "\r\n", 200},
		{"header line one past it", get + makeLine("A: ", "\r\n", 65537) + "\r\n", 431},
		{"last header line one past it", get + makeFields(98) + makeLine("A: ", "\n", 65537) + "\r\n", 431},
		{"header line without end", get + "A: " + strings.Repeat("x", 65534), 431},
		{"fields at the bound", get + makeFields(99) + "\r\n", 200},
		{"fields one past it", get + makeFields(100) + "\r\n", 431},
		{"fields one past it, no end", get + makeFields(100), 431},
		{"malformed beyond the bound is too many", get + makeFields(99) + "bad\r\n\r\n", 431},
		{"malformed before the bound is malformed", get + "bad\r\n" + makeFields(99) + "\r\n", 400},
		{"largest head", makeLine("GET /", " HTTP/1.1\r\n", 65536) + strings.Repeat(makeLine("A: ", "\r\n", 65536), 99) + "\r\n", 200},
		{"HTTP/0.9", "GET /\r\n", 400},
		{"no request line", "\r\n" + get + "\r\n", 400},
		{"no target", "GET  HTTP/1.1\r\n\r\n", 400},
		{"two targets", "GET / / HTTP/1.1\r\n\r\n", 400},
		{"tab", "GET\t/ HTTP/1.1\r\n\r\n", 400},
		{"control in target", "GET /\x01 HTTP/1.1\r\n\r\n", 400},
		{"method no token", "G(T / HTTP/1.1\r\n\r\n", 400},
		{"other protocol", "GET / HTTQ/1.1\r\n\r\n", 400},
		{"lower case", "GET / http/1.1\r\n\r\n", 400},
		{"no minor version", "GET / HTTP/1\r\n\r\n", 400},
		{"long minor version", "GET / HTTP/1.11\r\n\r\n", 400},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 400},
		{"version 2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
		{"version 0.9", "GET / HTTP/0.9\r\n\r\n", 505},
		{"later minor version", "GET / HTTP/1.9\r\n\r\n", 200},
		{"folded", get + "A: b\r\n c\r\n\r\n", 400},
		{"folded by tab", get + "A: b\r\n\tc\r\n\r\n", 400},
		{"folded first", get + " A: b\r\n\r\n", 400},
		{"no colon", get + "Abc\r\n\r\n", 400},
		{"no name", get + ": b\r\n\r\n", 400},
		{"space before colon", get + "A : b\r\n\r\n", 400},
		{"NUL in value", get + "A: b\x00\r\n\r\n", 400},
		{"bare CR in value", get + "A: b\rc\r\n\r\n", 400},
		{"two CR", get + "A: b\r\r\n\r\n", 400},
		{"non-ASCII in value", get + "A: \xc3\xa9\r\n\r\n", 200},
		{"no value", get + "A:\r\n\r\n", 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			res, body := parseAnswer(t, "GET", exchangeText(t, addr, row.request))
			if res.StatusCode != row.status || !res.Close || res.ContentLength != int64(len(body)) || res.Header.Get("Date") == "" {
				t.Fatalf("%v %q, want %d", res, body, row.status)
			}
			if row.status == 200 {
				return
			}
			if got := res.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
				t.Errorf(`Content-Type %q; want "text/plain; charset=utf-8"`, got)
			}
			if got := res.Header.Get("X-Request-ID"); !id.MatchString(got) {
				t.Errorf("X-Request-ID %q; want id.MatchString(got)", got)
			}
			if got := res.Header.Get("X-Refused"); got != fmt.Sprint(row.status) {
				t.Errorf("X-Refused %q; want got == fmt.Sprint(row.status)", got)
			}
			if !strings.HasSuffix(body, ".\n") || strings.Count(body, "\n") != 1 {
				t.Errorf("not one sentence: %q; want strings.HasSuffix(body, \".\\n\") && strings.Count(body, \"\\n\") == 1", body)
			}
		})
	}
}

// TestSameAnswerHoweverItArrives sends heads byte by byte.
func TestSameAnswerHoweverItArrives(t *testing.T) {
	t.Parallel()
	addr := startServer(t, &httpd.Server{Handler: echoRequest})
	for _, text := range []string{"GET /a?b HTTP/1.0\r\nHost: h\r\nB:\r\n\r\n", "GET / HTTP/1.1\r\n bad\r\n\r\n"} {
		c := dialServer(t, addr)
		for i := range len(text) {
			if _, err := io.WriteString(c, text[i:i+1]); err != nil {
				break // the answer may be there already
			}
		}
		answer, _ := io.ReadAll(c)
		want := exchangeText(t, addr, text)
		if statusLine(string(answer)) != statusLine(want) {
			t.Errorf("%q\nwant %q", answer, want)
		}
	}
}

// statusLine leaves the status line.
func statusLine(answer string) string { first, _, _ := strings.Cut(answer, "\r\n"); return first }

func TestHead(t *testing.T) {
	t.Parallel()
	addr := startServer(t, &httpd.Server{Handler: echoRequest})
	get := exchangeText(t, addr, "GET /abc HTTP/1.1\r\n\r\n")
	head := exchangeText(t, addr, "HEAD /abc HTTP/1.1\r\n\r\n")
	// The echo's body names the method, which is one letter longer.
	want := strings.Replace(get[:strings.Index(get, "\r\n\r\n")+4], "Content-Length: 17", "Content-Length: 18", 1)
	date := regexp.MustCompile(`Date: [^\r]+`)
	if date.ReplaceAllString(head, "") != date.ReplaceAllString(want, "") {
		t.Errorf("%q\nwant %q", head, want)
	}
	refused := exchangeText(t, addr, "HEAD / HTTP/1.1\r\n"+makeFields(100)+"\r\n")
	if !strings.HasPrefix(refused, "HTTP/1.1 431 ") || !strings.HasSuffix(refused, "\r\n\r\n") {
		t.Errorf("%q; want strings.HasPrefix(refused, \"HTTP/1.1 431 \") && strings.HasSuffix(refused, \"\\r\\n\\r\\n\")", refused)
	}
}

func TestExactBytes(t *testing.T) {
	t.Parallel()
	addr := startServer(t, &httpd.Server{Handler: func(w *httpd.Writer, _ *httpd.Request) {
		h := httpd.Header{{Name: "B", Value: "1\r\nEvil: 2"}, {Name: "A", Value: "é"}, {Name: "Date", Value: "now"}}
		if err := w.Answer(404, h, []byte("no\n")); err != nil {
			t.Error(err)
		}
		if err := w.Answer(200, nil, nil); !errors.Is(err, httpd.ErrAnswered) {
			t.Errorf("a second answer: %v; want errors.Is(err, httpd.ErrAnswered)", err)
		}
		if _, err := w.Stream(200, nil, limit); !errors.Is(err, httpd.ErrAnswered) {
			t.Errorf("a stream after an answer: %v; want errors.Is(err, httpd.ErrAnswered)", err)
		}
	}})
	const want = "HTTP/1.1 404 Not Found\r\nB: 1  Evil: 2\r\nA: é\r\nDate: now\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno\n"
	if got := exchangeText(t, addr, "GET / HTTP/1.1\r\n\r\n"); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestRequestFields(t *testing.T) {
	t.Parallel()
	got := make(chan httpd.Request, 1)
	addr := startServer(t, &httpd.Server{Handler: func(w *httpd.Writer, r *httpd.Request) {
		got <- *r
		_ = w.Answer(200, nil, nil)
	}})
	for _, row := range []struct {
		target                 string
		path, query, authority string
		hasQuery, absolute     bool
	}{
		{target: "/", path: "/"},
		{target: "/?", path: "/", hasQuery: true},
		{target: "/a?b?c#d", path: "/a", query: "b?c#d", hasQuery: true},
		{target: "*", path: "*"},
		{target: "host:80", path: "host:80"},
		{target: "http://h", path: "/", authority: "h", absolute: true},
		{target: "HTTP://u@h:1/a//../%2F?x=%", path: "/a//../%2F", query: "x=%", authority: "u@h:1", hasQuery: true, absolute: true},
		{target: "http://?x", path: "/", query: "x", hasQuery: true, absolute: true},
		{target: "a1+-.://h/b", path: "/b", authority: "h", absolute: true},
		{target: "1a://h/b", path: "1a://h/b"},
		{target: "/a://b", path: "/a://b"},
		{target: "?://", path: "", query: "://", hasQuery: true},
	} {
		exchangeText(t, addr, "GET "+row.target+" HTTP/1.1\r\nA:  b \r\na: c\r\nB:\td\r\n\r\n")
		r := <-got
		if r.Target != row.target || r.Path != row.path || r.RawQuery != row.query || r.HasQuery != row.hasQuery ||
			r.Authority != row.authority || r.Absolute != row.absolute {
			t.Errorf("%s: %+v; want r.Target == row.target && r.Path == row.path && r.RawQuery == row.query && r.HasQuery == row.hasQuery && r.Authority == row.authority && r.Absolute == row.absolute", row.target, r)
		}
		if v := r.Header.Values("a"); len(v) != 2 || v[0] != " b " || v[1] != "c" || r.Header.Get("A") != " b " || r.Header.Get("b") != "\td" || r.Header.Get("c") != "" {
			t.Errorf("%s: %q; want len(v) == 2 && v[0] == \" b \" && v[1] == \"c\" && r.Header.Get(\"A\") == \" b \" && r.Header.Get(\"b\") == \"\\td\" && r.Header.Get(\"c\") == \"\"", row.target, r.Header)
		}
		if _, ok := r.Header.Sole("a"); ok {
			t.Error("a repeated field is not the only one")
		}
		if v, ok := r.Header.Sole("b"); !ok || v != "\td" {
			t.Errorf("Sole: %q %v; want ok && v == \"\\td\"", v, ok)
		}
	}
}

// TestLargeAnswer has a body that is not copied behind its head.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for _, size := range []int{16 << 10, 16<<10 + 1, len(body)} {
		addr := startServer(t, &httpd.Server{Handler: func(w *httpd.Writer, _ *httpd.Request) {
			if err := w.Answer(200, nil, body[:size]); err != nil {
				t.Error(err)
			}
		}})
		if _, got := parseAnswer(t, "GET", exchangeText(t, addr, "GET / HTTP/1.1\r\n\r\n")); got != string(body[:size]) {
			t.Errorf("%d bytes, want %d", len(got), size)
		}
	}
}

// TestLateAndCutHeads: none of them is answered, all are closed.
func TestLateAndCutHeads(t *testing.T) {
	t.Parallel()
	const due = 200 * time.Millisecond
	addr := startServer(t, &httpd.Server{Handler: echoRequest, RequestTimeout: due, MaxConns: 64})
	for _, text := range []string{"", "GET", "GET / HTTP/1.1\r\nA: b\r\n", "GET / HTTP/1.1\r\nA: " + strings.Repeat("x", 60000), "GET / HTTP/1.1\r\n" + strings.Repeat(makeLine("A: ", "\r\n", 60000), 20)} {
		t.Run("late", func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			c := dialServer(t, addr)
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(c)
			if len(answer) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%q, %v; want len(answer) <= 0 && (err == nil || errors.Is(err, syscall.ECONNRESET))", answer, err)
			}
			if took := time.Since(began); took < due || took > due+5*time.Second {
				t.Errorf("closed after %v; want took >= due && took <= due + 5*time.Second", took)
			}
		})
		t.Run("cut", func(t *testing.T) {
			t.Parallel()
			c := dialServer(t, addr)
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if answer, err := io.ReadAll(c); len(answer) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%q, %v; want len(answer) <= 0 && (err == nil || errors.Is(err, syscall.ECONNRESET))", answer, err)
			}
		})
	}
}

// TestDripDoesNotMoveTheDeadline sends a byte of the head now and then.
func TestDripDoesNotMoveTheDeadline(t *testing.T) {
	t.Parallel()
	const due = 300 * time.Millisecond
	addr := startServer(t, &httpd.Server{Handler: echoRequest, RequestTimeout: due})
	began := time.Now()
	c := dialServer(t, addr)
	closed := make(chan struct{})
	go func() { defer close(closed); _, _ = io.ReadAll(c) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_, _ = io.WriteString(c, "G")
		case <-closed:
			if took := time.Since(began); took < due || took > due+5*time.Second {
				t.Errorf("closed after %v, want %v", took, due)
			}
			return
		}
	}
}

// TestStalledHeads: a thousand connections that send half a head delay no one.
func TestStalledHeads(t *testing.T) {
	t.Parallel()
	const due = 500 * time.Millisecond
	addr := startServer(t, &httpd.Server{Handler: echoRequest, RequestTimeout: due, MaxConns: 280})
	for range 1000 {
		c := dialServer(t, addr)
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nA: b\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if res, _ := parseAnswer(t, "GET", exchangeText(t, addr, "GET /healthz HTTP/1.1\r\n\r\n")); res.StatusCode != 200 {
		t.Errorf("%v; want res.StatusCode == 200", res)
	}
	// The newest 280 of 1,000 are left, and the one that has waited longest is closed.
	if took := time.Since(began); took > limit {
		t.Errorf("answered after %v; want took <= limit", took)
	}
}

// TestListenerPauses: where all connections are being worked on, the one beyond the bound is answered once another left.
func TestListenerPauses(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 8), make(chan struct{})
	addr := startServer(t, &httpd.Server{MaxConns: 3, Handler: func(w *httpd.Writer, r *httpd.Request) {
		entered <- struct{}{}
		<-leave
		echoRequest(w, r)
	}})
	var held []net.Conn
	for i := range 4 {
		c := dialServer(t, addr)
		held = append(held, c)
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if i < 3 { // one whose head is still on its way would give way
			<-entered
		}
	}
	select {
	case <-entered:
		t.Fatal("a fourth connection was served")
	case <-time.After(100 * time.Millisecond):
	}
	close(leave)
	<-entered
	for _, c := range held {
		if answer, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 ")) {
			t.Errorf(`%q, %v; want bytes.HasPrefix(answer, []byte("HTTP/1.1 200 "))`, answer, err)
		}
	}
}
