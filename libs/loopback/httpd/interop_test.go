package httpd_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

// TestNetHTTPClient: an ordinary client gets its answers, those too that leave its
// body unread.
func TestNetHTTPClient(t *testing.T) {
	t.Parallel()
	addr := startServer(t, &httpd.Server{Handler: func(w *httpd.Writer, r *httpd.Request) {
		if r.Path == "/refuse" {
			_ = w.Answer(413, nil, []byte("no\n"))
			return
		}
		readSizedBody(w, r)
	}})
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: limit}, Timeout: limit}
	t.Cleanup(client.CloseIdleConnections)
	big := bytes.Repeat([]byte("0123456789abcdef"), 2<<20/16)
	for _, row := range []struct {
		path, expect string
		body, want   []byte
		status       int
	}{
		{"/", "", big, big, 200},
		{"/", "100-continue", big, big, 200},
		{"/", "", []byte{}, []byte{}, 200},
		{"/refuse", "100-continue", big, []byte("no\n"), 413},
		{"/refuse", "", big[:200<<10], []byte("no\n"), 413},
	} {
		for range 3 {
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+row.path, bytes.NewReader(row.body))
			if err != nil {
				t.Fatal(err)
			}
			if row.expect != "" {
				req.Header.Set("Expect", row.expect)
			}
			if len(row.body) == 0 {
				req.Body, req.GetBody = http.NoBody, nil
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatalf("%s %q: %v", row.path, row.expect, err)
			}
			got, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || res.StatusCode != row.status || !bytes.Equal(got, row.want) || !res.Close {
				t.Errorf("%s %q: %v, %d bytes, %v", row.path, row.expect, res.Status, len(got), err)
			}
			if at, err := http.ParseTime(res.Header.Get("Date")); err != nil || time.Since(at) > limit {
				t.Errorf("Date: %v, %v; want time.Since(at) <= limit", at, err)
			}
		}
	}
	res, err := client.Head("http://" + addr + "/" + strings.Repeat("x", 100))
	if err != nil || res.StatusCode != 411 {
		t.Errorf("%v, %v; want res.StatusCode == 411", res, err)
	}
}
