// Package bench measures the dashboard in a browser: a real process of the service with the built web UI, upstreams that
// speak the wire of tracker, inference and control plane, and Chromium.
package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/app"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	models   = 5000
	entries  = 100_000
	rounds   = 5
	password = "admin-of-the-benchmark"
	root     = "../../.."
)

// bounds are several times what an idle machine takes, in milliseconds: beyond them people notice, on any machine.
var bounds = map[string]float64{
	"registry-ms": 5000, "audit-ms": 5000, "palette-key-ms": 250, "filter-ms": 500, "audit-search-ms": 1000, "sort-ms": 500, "page-ms": 1000, "audit-page-ms": 1000,
	"largest-answer-kib": 512,
}

// BenchmarkBrowser fails if a median is beyond its bound. It reports, as medians: navigation to painted data with nothing cached, for the overview, a
// registry of 5,000 models and an audit log of 100,000 entries; the time between frames while the registry scrolls, and on the same page at rest; and the
// time to the changed rows on the screen from a key press in the filter, in the palette and in the search of the audit
// log, from a click on a column, and from the end of a page of rows; and the largest answer, decoded. Without a GPU, Chromium renders on the
// processors that run the service and its upstreams, so the frame time at rest is this machine's minimum.
func BenchmarkBrowser(b *testing.B) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		b.Skip("no chromium; scripts/setup.sh e2e installs it")
	}
	packages, err := filepath.Abs(filepath.Join(root, ".cache/browser/node_modules"))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(packages, "playwright-core")); err != nil {
		b.Skip("no playwright-core; scripts/browser.sh installs it")
	}
	if built, _ := filepath.Glob(filepath.Join("../internal/webui/site", "index.html*")); len(built) == 0 {
		b.Skip("the web UI is not built; scripts/web.sh builds it")
	}
	told, err := json.Marshal(map[string]any{
		"url": startDashboard(b), "password": password, "chromium": chromium, "rounds": rounds, "models": models, "entries": entries, "overview": "main .stat, main .panel table, main .panel li",
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		cmd := exec.CommandContext(ctx, "node", "measure.cjs")
		cmd.Env = append(os.Environ(), "NODE_PATH="+packages)
		var out, errs bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(told), &out, &errs
		err := cmd.Run()
		cancel()
		if err != nil {
			b.Fatalf("measure.cjs: %v\n%s", err, errs.String())
		}
		figures := map[string]float64{}
		if err := json.Unmarshal(out.Bytes(), &figures); err != nil {
			b.Fatalf("measure.cjs printed %q: %v", out.String(), err)
		}
		for name, value := range figures {
			b.ReportMetric(value, name)
			if most, ok := bounds[name]; ok && value > most {
				b.Errorf("%s: %.0f, want at most %.0f", name, value, most)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}

// startDashboard runs the service on free ports and returns its address.
func startDashboard(b *testing.B) string {
	b.Helper()
	upstream := httptest.NewServer(platform(models))
	b.Cleanup(upstream.Close)
	cfg, err := app.LoadConfig([]string{
		"PLATFORM_DATABASE_URL=" + testenv.Postgres(b), "EVENT_PUBLISHER=log", "DRAIN_DELAY=0s", "EVENT_RELAY_ENABLED=false",
		"DASHBOARD_VIEWER_PASSWORD=viewer-of-the-benchmark", "DASHBOARD_ADMIN_PASSWORD=" + password,
		"DASHBOARD_JWT_SECRET=a-secret-of-the-benchmark-with-more-than-32-bytes",
		"DASHBOARD_SECRET_KEY=MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlBQkNERUY=", "DASHBOARD_SOURCE_TIMEOUT=20s",
		"TRACKING_URI=" + upstream.URL, "SERVING_URL=" + upstream.URL, "CONTROL_PLANE_URL=" + upstream.URL, "ORCHESTRATOR_API_URL=" + upstream.URL + "/api", "ASSISTANT_URL=" + upstream.URL,
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, l := range []*net.Listener{&cfg.Listener, &cfg.ToolsListener} {
		if *l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			b.Fatal(err)
		}
	}
	cfg.PublicURL, cfg.ToolsURL = "http://"+cfg.Listener.Addr().String(), "http://"+cfg.ToolsListener.Addr().String()
	if err := app.Migrate(b.Context(), cfg); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, cfg, slog.New(slog.NewJSONHandler(io.Discard, nil))) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("the service ended with %v", err)
		}
	})
	return cfg.PublicURL
}

// platform speaks for tracker, inference and control plane about n models.
func platform(n int) http.Handler {
	mux := http.NewServeMux()
	list := func(first, last int, format string) string {
		var text strings.Builder
		for i := first; i < last; i++ {
			if i > first {
				text.WriteByte(',')
			}
			fmt.Fprintf(&text, format, i, i%7+1, float64(i%40)/10, []string{"OK", "OK", "WARNING", "CRITICAL"}[i%40/10])
		}
		return text.String()
	}
	// page answers a part of the list; the two texts around it end with the cursor where it is part of the body.
	page := func(w http.ResponseWriter, r *http.Request, size int, cursor string, write func(list, next string) string, format string) {
		first := 0
		_, _ = fmt.Sscan(r.URL.Query().Get(cursor), &first)
		last, next := min(first+size, n), ""
		if last < n {
			next = fmt.Sprint(last)
			w.Header().Set("X-Next-Cursor", next)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, write(list(first, last, format), next))
	}
	answer := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
	}
	mux.HandleFunc("/api/2.0/mlflow/registered-models/search", func(w http.ResponseWriter, r *http.Request) {
		page(w, r, 200, "page_token", func(list, next string) string {
			return `{"registered_models":[` + list + `],"next_page_token":"` + next + `"}`
		}, `{"name":"model-%05[1]d","last_updated_timestamp":1795386212565,"latest_versions":[{"name":"model-%05[1]d","version":"%[2]d"}],"aliases":[{"alias":"Production","version":"%[2]d"}]}`)
	})
	mux.HandleFunc("/drift/status", func(w http.ResponseWriter, r *http.Request) {
		page(w, r, 500, "cursor", func(list, _ string) string { return `[` + list + `]` },
			`{"model":"MODEL-%05[1]d","alias":"Production","version":"%[2]d","status":"%[4]s","overall":"%[4]s","z_score":%[3]f,"live_mean":1,"live_std":1,"n_snapshots":100,"n_baseline":100,"measures":{},"recent":[`+
				strings.TrimSuffix(strings.Repeat("233.218,240.5,", 12), ",")+`]}`)
	})
	answer("/health", `{"status":"ok","models_loaded":`+fmt.Sprint(n)+`,"models":{`+list(0, n, `"MODEL-%05[1]d":{"version":"%[2]d","run_id":"","status":"ok","aliases":{"Production":"%[2]d"}}`)+`}}`)
	answer("/modelrepo/status", `{"last_event":null,"models":[`+list(0, n, `{"model_id":"MODEL-%05[1]d","status":"current"}`)+`]}`)
	answer("/traffic-rules", `{"items":[],"next_cursor":null}`)
	answer("/promotion/policies", `{"items":[],"next_cursor":null}`)
	mux.HandleFunc("/audit/events", serveAudit)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { // routes that these views do not need
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"not_found","status":404,"title":"Not found","detail":"There is no such route."}`)
	})
	return mux
}

// serveAudit answers pages of the ledger, newest first. q is a model's name; each has 20 entries.
func serveAudit(w http.ResponseWriter, r *http.Request) {
	limit, before, model := 100, entries+1, -1
	_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
	_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &before)
	count := entries
	if q := r.URL.Query().Get("q"); q != "" {
		count = entries / models
		if _, err := fmt.Sscanf(q, "model-%d", &model); err != nil {
			model, count = models, 0
		}
	}
	var items []string
	next := "null"
	for seq := before - 1; seq > 0; seq-- {
		if model >= 0 && seq%models != model {
			continue
		}
		if len(items) == limit {
			next = fmt.Sprintf(`"%d"`, seq+1)
			break
		}
		items = append(items, fmt.Sprintf(`{"v":1,"tenant":"default","seq":%[1]d,"event_id":"01930000-0000-7000-8000-%012[1]d","ts":"2026-11-22T10:00:00.%06[1]dZ","source":"control-plane",`+
			`"actor":"alice","action":"retrain.requested","target":"model:MODEL-%05[2]d","outcome":"ok","request_id":"req-%[1]d","details":{"dataset":"JobEmbeddings","is_dummy":false},"prev_hash":"%064[1]x","hash":"%064[1]x"}`, seq, seq%models))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"items":[%s],"next_cursor":%s,"count":%d}`, strings.Join(items, ","), next, count)
}
