package tracker_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
	"github.com/mlp-platform/platform/libs/tracker"
)

// answering is a server that answers every request with the same bytes.
type answering struct {
	status int
	body   []byte
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}, nil
}

// FuzzAnswers: whatever a registry answers, reading it ends in a value or an error of limited size, with memory in
// proportion to the answer.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		`{"registered_models": [{"name": "m", "creation_timestamp": 1700000000000, "latest_versions": [{"name": "m", "version": "1", "tags": [{"key": "a", "value": "b"}]}], "aliases": [{"alias": "Production", "version": "1"}]}], "next_page_token": ""}`,
		`{"registered_model": {"name": "m", "tags": null, "aliases": [{}]}}`, `{"model_versions": [{"version": "1e9"}]}`,
		`{"run": {"info": {"run_id": "r", "start_time": "x"}, "data": {"metrics": [{"key": "m", "value": "NaN"}]}}}`,
		`{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "none"}`, `[`, `null`, `{"root_uri": 1}`, "<html>",
	} {
		f.Add(200, []byte(text))
		f.Add(404, []byte(text))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			status = 200
		}
		c := tracker.New("http://tracker", &http.Client{Transport: answering{status, body}}, tracker.Backoff(time.Nanosecond), tracker.MaxDownload(1<<20))
		ctx := context.Background()
		hostiletest.CheckAllocation(t, uint64(8<<20+512*len(body)), func() {
			pages := 0
			for _, err := range c.SearchRegisteredModels(ctx, "") {
				checkError(t, err)
				if pages++; err != nil || pages > 1000 { // the same page for ever
					break
				}
			}
			_, err := c.GetRegisteredModel(ctx, "m")
			checkError(t, err)
			_, err = c.GetModelVersion(ctx, "m", "1")
			checkError(t, err)
			_, err = c.GetRun(ctx, "r")
			checkError(t, err)
		})
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	if err != nil && len(err.Error()) > 8<<10 {
		t.Fatalf("the error has %d bytes: %.200v; want at most 8 KiB", len(err.Error()), err)
	}
}
