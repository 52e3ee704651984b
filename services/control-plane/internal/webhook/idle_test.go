package webhook_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// strangers is how many sockets a test leaves open.
const strangers = 200

// offered looks like a proof of forge B until the body has arrived.
var offered = "X-Hub-Signature-256: sha256=" + strings.Repeat("0", 64) + "\r\n"

// sendPartially opens a socket, writes the beginning of a delivery and stops.
func sendPartially(t testing.TB, p *controlplanetest.Plane, path, header, body string) net.Conn {
	t.Helper()
	host := strings.TrimPrefix(p.URL, "http://")
	conn, err := net.DialTimeout("tcp", host, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", path, host, header, body); err != nil {
		t.Fatal(err)
	}
	return conn
}

// readStatusCode reads the answer to an unfinished delivery.
func readStatusCode(t testing.TB, conn net.Conn) int {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("no answer: %v", err)
		return 0
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK && !r.Close {
		t.Errorf("%s, and the connection stays; want (r.StatusCode == http.StatusOK || r.Close)", r.Status)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode
}

// Strangers who leave deliveries unfinished do not block a forge.
func TestIdleStrangersKeepNobodyOut(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	body := sampleB(t, parsePayload{"ref": "refs/heads/other"})
	sent := headersB(t, body)
	for name, c := range map[string]struct{ path, header, body string }{
		"forge B, one byte":               {pathB, offered + "Content-Length: 1000\r\n", "{"},
		"forge B, nothing":                {pathB, offered + "Content-Length: 5242880\r\n", ""},
		"forge B, chunked":                {pathB, offered + "Transfer-Encoding: chunked\r\n", "1\r\n{\r\n"},
		"forge B, half of what it may be": {pathB, offered + "Content-Length: 60000\r\n", strings.Repeat("x", 30000)},
		"forge A, chunked, no token":      {pathA, "Transfer-Encoding: chunked\r\n", ""},
		"forge A, wrong token":            {pathA, "X-Gitlab-Token: nosuch\r\nTransfer-Encoding: chunked\r\n", ""},
	} {
		conns := make([]net.Conn, strangers)
		for i := range conns {
			conns[i] = sendPartially(t, p, c.path, c.header, c.body)
		}
		for range 3 {
			p.Want(200, "POST", pathB, "", body, sent...)
			p.Want(200, "POST", pathA, "", body, headersA()...)
		}
		want := 408
		if c.path == pathA {
			want = 401 // the token is a header: there is no wait
		}
		var wg sync.WaitGroup
		for _, conn := range conns {
			wg.Go(func() {
				if got := readStatusCode(t, conn); got != want {
					t.Errorf("%s: answered %d, want %d", name, got, want)
				}
			})
		}
		wg.Wait()
	}
}

// Signed deliveries of forge A count as strangers' too until the body has arrived.
func TestIdleSignersKeepNobodyOut(t *testing.T) {
	t.Parallel()
	const token = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	p := startWithSecret(t, "MODELREPO_WEBHOOK_SIGNING_TOKEN="+token)
	body := sampleA(t, parsePayload{"ref": "refs/heads/other"})
	stamp := fmt.Sprint(time.Now().Unix())
	for range strangers {
		sendPartially(t, p, pathA, "Webhook-Id: x\r\nWebhook-Timestamp: "+stamp+"\r\nWebhook-Signature: v1,AAAA\r\nContent-Length: 1000\r\n", "{")
	}
	for _, id := range []string{"d1", "d2", "d3"} {
		p.Want(200, "POST", pathA, "", body, "webhook-id", id, "webhook-timestamp", stamp,
			"webhook-signature", pythonSignature(t, token, id, stamp, body), "X-Gitlab-Event", "Push Hook")
	}
}

// A body that trickles in is ended long before the time allowed for a whole one.
func TestTricklingBodyEnds(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	conn := sendPartially(t, p, pathB, offered+"Content-Length: 1000\r\n", "{")
	began := time.Now()
	done := make(chan struct{})
	defer func() { <-done }()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if _, err := conn.Write([]byte("x")); err != nil {
					return
				}
			}
		}
	}()
	if got := readStatusCode(t, conn); got != 408 {
		t.Errorf("answered %d; want 408", got)
	}
	if took := time.Since(began); took > 18*time.Second {
		t.Errorf("ended after %s; want took <= 18 * time.Second", took)
	}
}
