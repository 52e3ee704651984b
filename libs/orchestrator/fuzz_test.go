package orchestrator

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// FuzzAnswers: whatever an orchestrator answers, reading it ends in a value or a short error, with memory in proportion
// to the answer, and a list ends even if every page of it is full.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		`{"id": "5f6b3f0e-3c63-4a36-9f0b-1d1f0d9f1a11", "name": "r", "state_type": "RUNNING", "state": {"type": "RUNNING", "timestamp": "2026-01-02T03:04:05Z"}, "parameters": {"a": 1}, "tags": ["x"]}`,
		`[{"id": "5f6b3f0e-3c63-4a36-9f0b-1d1f0d9f1a11"}]`, `[{}]`, `[{}, {}, {}]`, `"3.4.0"`, `true`, `12`, `null`, `[[[[`, "<html>", "",
		`{"detail": "` + string(bytes.Repeat([]byte("x"), 9000)) + `"}`, `{"detail": [{"loc": ["body", "a", 0], "msg": "no"}]}`, `{"start_time": "` + string(bytes.Repeat([]byte("9"), 9000)) + `"}`,
	} {
		f.Add(200, []byte(text))
		f.Add(422, []byte(text))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			status = 200
		}
		c := New("http://orchestrator/api", &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
		})})
		checkError := func(err error) {
			t.Helper()
			if err != nil && len(err.Error()) > 8<<10 {
				t.Fatalf("the error has %d bytes: %.200v; want at most 8 KiB", len(err.Error()), err)
			}
		}
		hostiletest.CheckAllocation(t, uint64(16<<20+1024*len(body)), func() {
			_, err := c.ReadFlowRun(t.Context(), uuid.Nil)
			checkError(err)
			_, err = c.ReadDeploymentByName(t.Context(), "f", "d")
			checkError(err)
			_, err = c.States(t.Context(), uuid.Nil)
			checkError(err)
			_, err = c.Logs(t.Context(), uuid.Nil, 10, 0)
			checkError(err)
			_, err = c.ScheduledFlowRuns(t.Context(), "p", time.Time{}, 1)
			checkError(err)
			_, err = c.CountFlowRuns(t.Context(), Filter{})
			checkError(err)
			_, err = c.SetState(t.Context(), uuid.Nil, State{Type: Running}, true)
			checkError(err)
			_, err = c.Version(t.Context())
			checkError(err)
			checkError(c.Health(t.Context()))
		})
	})
}
