package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
)

// The entries of a day, or up to a time, can be listed.
func TestAuditOfASpan(t *testing.T) {
	t.Parallel()
	var asked string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = q.Get("since") + " " + q.Get("until")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"items":[],"next_cursor":null}`)
	}))
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": srv.URL}
	for _, c := range []struct{ line, want, fault string }{
		{"audit", "2025-12-04T03:04:05Z ", ""},
		{"audit --last 12h", "2026-01-02T15:04:05Z ", ""},
		{"audit --since yesterday --until today", "2026-01-02T00:00:00Z 2026-01-03T00:00:00Z", ""},
		{"audit --since 2026-01-01T08:00:00+02:00", "2026-01-01T06:00:00Z ", ""},
		{"audit --last 2d --until 12h", "2026-01-01T03:04:05Z 2026-01-02T15:04:05Z", ""},
		{"audit --since today --until yesterday", "", "--until yesterday is not after the beginning, 2026-01-03T00:00:00Z"},
		{"audit --since today --last 2d", "", "--last and --since contradict each other"},
		{"audit --until soon", "", `"soon" is not a valid time`},
	} {
		asked = ""
		var out, talk bytes.Buffer
		env := &Env{In: strings.NewReader(""), Out: &out, Err: &talk, Format: output.Table, Getenv: func(k string) string { return vars[k] },
			Now: func() time.Time { return time.Date(2026, 1, 3, 3, 4, 5, 0, time.UTC) }}
		one.Lock()
		code := Main(t.Context(), env, append([]string{"mlp"}, strings.Fields(c.line)...))
		one.Unlock()
		want := 0
		if c.fault != "" {
			want = 2
		}
		if code != want || asked != c.want || !strings.Contains(talk.String(), c.fault) {
			t.Errorf("%s: exit %d, asked for %q, said %q; want exit %d, %q, %q", c.line, code, asked, talk.String(), want, c.want, c.fault)
		}
	}
}
