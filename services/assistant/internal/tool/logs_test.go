package tool_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/mlp-platform/platform/services/assistant/internal/change"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/tool"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// longLog answers reads of logs with the last lines of one log, as the API does; all else goes to the cluster.
type longLog struct {
	next  http.RoundTripper
	lines []string

	mu    sync.Mutex
	tails []int // guarded by mu: the requested tails
}

func (l *longLog) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/log") {
		return l.next.RoundTrip(r)
	}
	tail, err := strconv.Atoi(r.URL.Query().Get("tailLines"))
	if err != nil {
		return nil, fmt.Errorf("read of a log without tailLines: %w", err)
	}
	l.mu.Lock()
	l.tails = append(l.tails, tail)
	l.mu.Unlock()
	text := strings.Join(l.lines[max(0, len(l.lines)-tail):], "\n") + "\n"
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// toolsWithLog gives tools on the shared cluster, in which every log is a long one.
func toolsWithLog(t *testing.T, log *longLog) *tool.Tools {
	t.Helper()
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) {
		config := rest.CopyConfig(shared().Config())
		config.WrapTransport = transport.Wrappers(config.WrapTransport, func(next http.RoundTripper) http.RoundTripper {
			log.next = next
			return log
		})
		return config, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	changes, err := change.New(change.Config{}, change.Deps{Cluster: c, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.New(tool.Config{}, tool.Deps{Cluster: c, Planner: change.Planner{Service: changes}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// TestLogIsReadInPages: a whole log is read from its end to its beginning, or to the bound in bytes, which is said.
func TestLogIsReadInPages(t *testing.T) {
	t.Parallel()
	const workload = "ledger"
	for name, row := range map[string]struct {
		lines, width int
		contains     string
		tails        []int
		cut          bool
		first        string
	}{
		"one page":                  {lines: 1500, width: 20, tails: []int{2000}, first: "line 0 "},
		"an error before page one":  {lines: 9000, width: 20, tails: []int{2000, 8000, 32000}, first: "line 0 "},
		"more than the bound":       {lines: 9000, width: 900, tails: []int{2000, 8000}, cut: true},
		"a text, in another case":   {lines: 9000, width: 20, contains: "LINE 3 ", tails: []int{2000, 8000, 32000}, first: "line 3 "},
		"a text that is not there":  {lines: 3000, width: 20, contains: "absent", tails: []int{2000, 8000}},
		"a text in a very long log": {lines: 40000, width: 900, contains: "line 39999 ", tails: []int{2000, 8000, 32000, 128000}, first: "line 39999 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &longLog{}
			for i := range row.lines {
				log.lines = append(log.lines, fmt.Sprintf("line %d %s", i, strings.Repeat("x ", row.width/2)))
			}
			tools := toolsWithLog(t, log)
			op := operation.Operation{Verb: operation.Logs, Kind: "deployment", Names: []string{workload}, Namespace: "payments", Contains: row.contains}
			out, err := tools.Run(turn.WantWholeLog(t.Context()), readerTurn("payments"), operation.Normalize(op))
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(log.tails) != fmt.Sprint(row.tails) || out.WholeTruncated != row.cut {
				t.Errorf("read the last %v lines, cut %v; want %v, %v", log.tails, out.WholeTruncated, row.tails, row.cut)
			}
			if !strings.HasPrefix(out.Whole, row.first) || row.first == "" && !row.cut && out.Whole != "" {
				t.Errorf("the log begins %.40q; want %q", out.Whole, row.first)
			}
		})
	}
}
