package evidenceapi_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/evidence-api/internal/evidenceapitest"
)

// FuzzInspectFraming: whatever is said of a body and whatever body comes, an inspection
// is answered, with a 2xx or a 4xx and one answer, and the next one is answered too.
func FuzzInspectFraming(f *testing.F) {
	tw := evidenceapitest.Start(f, evidenceapitest.NoStore)
	for _, length := range []string{"2", "+2", "-0", "2.0", "1 1", "", "02", "\t2 ", "2097152", "2097153", "99999999999999999999",
		"2\r\nContent-Length: 3", "2\r\nContent-Length: 02", "2\r\nTransfer-Encoding: chunked", "2\r\nExpect: 100-continue", "2\r\n\r\nGET / HTTP/1.1", "\x00", "٢"} {
		f.Add(length, "application/json", []byte("{}"))
	}
	f.Add("1", "application/json; charset=\"", []byte{0xff})
	f.Add("3", "text/plain\r\nContent-Type: application/json", []byte("[1"))
	f.Add("20000", "APPLICATION/JSON;", bytes.Repeat([]byte("["), 20000))
	f.Fuzz(func(t *testing.T, length, contentType string, body []byte) {
		c, err := net.DialTimeout("tcp4", tw.Addr, evidenceapitest.Patience)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if err := c.SetDeadline(time.Now().Add(evidenceapitest.Patience)); err != nil {
			t.Fatal(err)
		}
		// An early answer may cut the request short.
		_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nX-SVC-UI-Token: %s\r\nContent-Type: %s\r\nContent-Length: %s\r\n\r\n",
			inspect, evidenceapitest.Token, contentType, length)
		_, _ = c.Write(body)
		_ = c.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(c)
		if err != nil {
			t.Fatalf("%v after %q", err, answer)
		}
		answer = bytes.TrimPrefix(answer, []byte("HTTP/1.1 100 Continue\r\n\r\n"))
		if !bytes.HasPrefix(answer, []byte("HTTP/1.1 2")) && !bytes.HasPrefix(answer, []byte("HTTP/1.1 4")) {
			t.Fatalf(`answered with %.200q; want (bytes.HasPrefix(answer, []byte("HTTP/1.1 2")) || bytes.HasPrefix(answer, []byte("HTTP/1.1 4")))`, answer)
		}
		if bytes.Contains(answer, []byte("\r\n\r\nHTTP/1.1")) {
			t.Fatalf("two answers: %q; want !bytes.Contains(answer, []byte(\"\\r\\n\\r\\nHTTP/1.1\"))", answer)
		}
	})
}
