package httpd_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

// readSizedBody reads a body of the length that the request declares.
func readSizedBody(w *httpd.Writer, r *httpd.Request) {
	n, err := strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64)
	if err != nil {
		_ = w.Answer(411, nil, nil)
		return
	}
	body, err := r.ReadBody(n)
	if err != nil {
		_ = w.Answer(408, nil, []byte(err.Error()))
		return
	}
	_ = w.Answer(200, nil, body)
}

func TestReadBody(t *testing.T) {
	t.Parallel()
	addr := startServer(t, &httpd.Server{Handler: readSizedBody})
	big := strings.Repeat("0123456789abcdef", 2<<20/16)
	for _, body := range []string{"", "x", big} {
		text := fmt.Sprintf("POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if res, got := parseAnswer(t, "POST", exchangeText(t, addr, text)); res.StatusCode != 200 || got != body {
			t.Errorf("%v, %d bytes; want res.StatusCode == 200 && got == body", res, len(got))
		}
		// What follows the body is ignored.
		if res, got := parseAnswer(t, "POST", exchangeText(t, addr, text+"GET / HTTP/1.1\r\n\r\n")); res.StatusCode != 200 || got != body {
			t.Errorf("followed: %v, %d bytes; want res.StatusCode == 200 && got == body", res, len(got))
		}
		// The body in a separate packet.
		c := dialServer(t, addr)
		head, _, _ := strings.Cut(text, "\r\n\r\n")
		for _, part := range []string{head + "\r\n\r\n", body} {
			if _, err := io.WriteString(c, part); err != nil {
				t.Fatal(err)
			}
		}
		if answer, err := io.ReadAll(c); err != nil || !bytes.HasSuffix(answer, []byte("\r\n\r\n"+body)) {
			t.Errorf("in parts: %.100q, %v; want bytes.HasSuffix(answer, []byte(\"\\r\\n\\r\\n\"+body))", answer, err)
		}
	}
}

func TestBodyInTwoReads(t *testing.T) {
	t.Parallel()
	addr := startServer(t, &httpd.Server{Handler: func(w *httpd.Writer, r *httpd.Request) {
		a, err := r.ReadBody(2)
		b, err2 := r.ReadBody(3)
		_, err3 := r.ReadBody(-1)
		_ = w.Answer(200, nil, fmt.Appendf(nil, "%s %s %v %v %v", a, b, err, err2, errors.Is(err3, httpd.ErrTimeout)))
	}})
	if _, body := parseAnswer(t, "POST", exchangeText(t, addr, "POST / HTTP/1.1\r\n\r\nabcdef")); body != "ab cde <nil> <nil> true" {
		t.Errorf(`%q; want "ab cde <nil> <nil> true"`, body)
	}
}

func TestBodyLateOrCut(t *testing.T) {
	t.Parallel()
	const due = time.Second
	addr := startServer(t, &httpd.Server{Handler: readSizedBody, RequestTimeout: due})
	const text = "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcd"
	began := time.Now()
	if res, _ := parseAnswer(t, "POST", exchangeText(t, addr, text)); res.StatusCode != 408 {
		t.Errorf("late: %v; want res.StatusCode == 408", res)
	}
	if took := time.Since(began); took < due || took > due+5*time.Second {
		t.Errorf("answered after %v; want took >= due && took <= due + 5*time.Second", took)
	}
	began = time.Now()
	c := dialServer(t, addr)
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 408 ")) {
		t.Errorf(`cut: %q, %v; want bytes.HasPrefix(answer, []byte("HTTP/1.1 408 "))`, answer, err)
	}
	if took := time.Since(began); took >= due {
		t.Errorf("a body that ended was waited for: %v; want took < due", took)
	}
}

func TestExpectContinue(t *testing.T) {
	t.Parallel()
	addr := startServer(t, &httpd.Server{Handler: readSizedBody})
	const asks = "HTTP/1.1 100 Continue\r\n\r\n"
	for _, row := range []struct {
		name, head, body string
		asked            bool
		status           string
	}{
		{"asked", "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", "abc", true, "200"},
		{"any case", "POST / HTTP/1.1\r\nexpect:  100-CONTINUE \r\nContent-Length: 3\r\n\r\n", "abc", true, "200"},
		{"framing failed", "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: x\r\n\r\n", "", false, "411"},
		{"no body", "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n", "", false, "200"},
		{"came along", "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", "", false, "200"},
		{"other expectation", "POST / HTTP/1.1\r\nExpect: 200-ok\r\nContent-Length: 3\r\n\r\n", "abc", false, "200"},
		{"HTTP/1.0", "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", "abc", false, "200"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := dialServer(t, addr)
			if _, err := io.WriteString(c, row.head); err != nil {
				t.Fatal(err)
			}
			if row.asked {
				got := make([]byte, len(asks))
				if _, err := io.ReadFull(c, got); err != nil || string(got) != asks {
					t.Fatalf("%q, %v; want string(got) == asks", got, err)
				}
			}
			if _, err := io.WriteString(c, row.body); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+row.status+" ") {
				t.Errorf(`%q, %v; want strings.HasPrefix(string(answer), "HTTP/1.1 "+row.status+" ")`, answer, err)
			}
		})
	}
}

// TestUnreadBodyIsDiscarded: clients that are still sending see the answer, up to
// the bound; beyond it they may be reset.
func TestUnreadBodyIsDiscarded(t *testing.T) {
	t.Parallel()
	addr := startServer(t, &httpd.Server{Handler: func(w *httpd.Writer, _ *httpd.Request) { _ = w.Answer(413, nil, []byte("no\n")) }})
	began := time.Now()
	for _, request := range []string{
		"POST / HTTP/1.1\r\nContent-Length: 262144\r\n\r\n",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
		"PUT / HTTP/1.1\r\n\r\n",
	} {
		for range 5 {
			c := dialServer(t, addr)
			if _, err := io.WriteString(c, request); err != nil {
				t.Fatal(err)
			}
			// The answer comes at once, together with the half-close.
			answer, err := io.ReadAll(c)
			if err != nil || !strings.HasSuffix(string(answer), "\r\n\r\nno\n") {
				t.Fatalf("%s%q, %v; want strings.HasSuffix(string(answer), \"\\r\\n\\r\\nno\\n\")", request, answer, err)
			}
			if _, err := c.Write(make([]byte, 200<<10)); err != nil {
				t.Fatalf("%sthe rest of the body was not taken: %v", request, err)
			}
			_ = c.Close()
		}
	}
	// An answer that ended with the discarding would take half a second.
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("20 answers took %v; want took <= 9 * time.Second", took)
	}
}

func TestDiscardEnds(t *testing.T) {
	t.Parallel()
	addr := startServer(t, &httpd.Server{Handler: func(w *httpd.Writer, _ *httpd.Request) { _ = w.Answer(413, nil, nil) }})
	const request = "POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"
	t.Run("by bytes", func(t *testing.T) {
		t.Parallel()
		c := dialServer(t, addr)
		_, _ = io.WriteString(c, request)
		if _, err := io.ReadAll(c); err != nil {
			t.Fatal(err)
		}
		sent := 0
		for {
			n, err := c.Write(make([]byte, 64<<10))
			sent += n
			if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
				break
			}
			if err != nil || sent > 64<<20 {
				t.Fatalf("%d bytes taken, %v; want sent <= 64 << 20", sent, err)
			}
		}
	})
	t.Run("by time", func(t *testing.T) {
		t.Parallel()
		began := time.Now()
		c := dialServer(t, addr)
		_, _ = io.WriteString(c, request)
		if _, err := io.ReadAll(c); err != nil {
			t.Fatal(err)
		}
		// The answer has ended, and later data is still accepted for a while.
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := c.Write([]byte("x")); err != nil {
				break
			}
			if time.Since(began) > limit {
				t.Fatal("bytes are taken for ever")
			}
		}
		if took := time.Since(began); took < 450*time.Millisecond {
			t.Errorf("reset after %v; want took >= 450 * time.Millisecond", took)
		}
	})
}

// TestReadIsClosedAtOnce: an answer to a request without a body needs no wait for
// the peer.
func TestReadIsClosedAtOnce(t *testing.T) {
	t.Parallel()
	addr := startServer(t, &httpd.Server{Handler: echoRequest, MaxConns: 1})
	began := time.Now()
	for range 20 {
		c := dialServer(t, addr) // stays open on this side
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); err != nil {
			t.Fatal(err)
		}
	}
	// Each wait for the peer would take half a second.
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("%v; want took <= 9 * time.Second", took)
	}
}
