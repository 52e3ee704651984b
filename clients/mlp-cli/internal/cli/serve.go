package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func serveCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "serve", Usage: "the inference service", Subcommands: []*cli.Command{
		{Name: "check", Usage: "health, and one prediction per served model", Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			return serveCheck(c.Context, env)
		}},
		{Name: "benchmark", Usage: "measure the latency of predictions", Flags: []cli.Flag{
			&cli.IntFlag{Name: "requests", Aliases: []string{"n"}, Value: 200, Usage: "how many, after the warm-up"},
			&cli.IntFlag{Name: "concurrency", Value: 8, Usage: "clients at once"},
			&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "model (default: the first served)"},
			&cli.Float64Flag{Name: "max-p99-ms", Usage: "exit 1 when p99 is above this many milliseconds"},
			&cli.BoolFlag{Name: "plot", Usage: "draw the histogram of latencies with its scale, below the table"},
		}, Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			o := benchOptions{n: c.Int("requests"), clients: c.Int("concurrency"), model: c.String("model"), plot: c.Bool("plot")}
			if c.IsSet("max-p99-ms") {
				v := c.Float64("max-p99-ms")
				o.maxP99 = &v
			}
			if o.n < 1 || o.clients < 1 || o.clients > 1024 {
				return fault.Usage("--requests must be at least 1, --concurrency 1 to 1024")
			}
			return serveBenchmark(c.Context, env, o)
		}},
		serveReloadCommand(env),
		serveInferCheckCommand(env),
		serveTrafficCommand(env),
	}}
}

// sampleBody builds one valid predict body from a model's own schema.
func sampleBody(m inference.LoadedModel) ([]byte, error) {
	features := map[string]any{}
	for _, in := range m.Inputs {
		switch in.Kind {
		case inference.ColumnKindVector:
			n := 0
			if in.Length != nil {
				n = *in.Length
			}
			v := make([]float64, n)
			for i := range v {
				v[i] = 0.1
			}
			features[in.Name] = v
		case inference.ColumnKindCategory:
			features[in.Name] = "unknown"
		case inference.ColumnKindBoolean:
			features[in.Name] = true
		default:
			features[in.Name] = 1
		}
	}
	body, err := json.Marshal(inference.PredictRequest{Features: features})
	if err != nil {
		return nil, fmt.Errorf("make a prediction for %s: %w", m.ModelName, err)
	}
	return body, nil
}

func serveCheck(ctx context.Context, env *Env) error {
	r, err := env.Config()
	if err != nil {
		return err
	}
	s := env.serving(r)
	var health inference.Health
	if err := s.get(ctx, "/health", &health); err != nil {
		return err
	}
	var models []inference.LoadedModel
	if err := s.get(ctx, "/models", &models); err != nil {
		return err
	}
	type row struct {
		Model     string   `json:"model"`
		Version   string   `json:"version"`
		LatencyMS *float64 `json:"latency_ms"`
		Result    string   `json:"result"`
		Error     *string  `json:"error"`
	}
	rows := []row{}
	failed := 0
	for _, m := range models {
		body, err := sampleBody(m)
		if err != nil {
			return err
		}
		begin := time.Now()
		var out inference.Prediction
		err = s.probe(ctx, "/predict/"+escapeSegment(m.ModelName), body, &out)
		ms := float64(time.Since(begin).Microseconds()) / 1000
		w := row{Model: m.ModelName, Version: m.ModelVersion, LatencyMS: &ms, Result: "PASS"}
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			failed++
			msg := err.Error()
			w.Result, w.Error = "FAIL", &msg
		}
		rows = append(rows, w)
	}
	g := output.Grid{Columns: []string{"Model", "Version", "Latency", "Result"}, Empty: "No model is served. Train one with: mlp retrain <model>",
		Doc: map[string]any{"status": health.Status, "models_loaded": health.ModelsLoaded, "models": rows}}
	for _, w := range rows {
		g.Rows = append(g.Rows, []any{w.Model, w.Version, fmt.Sprintf("%.2f ms", *w.LatencyMS), styledStatus(w.Result)})
		if w.Error != nil {
			g.Notes = append(g.Notes, output.Clean(w.Model+": "+*w.Error))
		}
	}
	if failed == 0 && len(models) > 0 {
		return env.Printer().Print(g)
	}
	f := fault.New("check_failed", "%d of %d served models do not answer", failed, len(models)).WithHint("see the reason: mlp status; curl $SERVING_URL/health")
	if len(models) == 0 {
		f = nothingServed("inference is " + string(health.Status))
	}
	return env.failWith(f, g)
}

func nothingServed(so string) *fault.Error {
	return fault.New("nothing_served", "no model is served: %s", so).WithHint("train one with: mlp retrain <model>")
}

type benchOptions struct {
	n, clients int
	model      string
	maxP99     *float64
	plot       bool
}

func serveBenchmark(ctx context.Context, env *Env, o benchOptions) error {
	r, err := env.Config()
	if err != nil {
		return err
	}
	s := env.serving(r)
	var models []inference.LoadedModel
	if err := s.get(ctx, "/models", &models); err != nil {
		return err
	}
	var m *inference.LoadedModel
	for i := range models {
		if o.model == "" || strings.EqualFold(models[i].ModelName, o.model) {
			m = &models[i]
			break
		}
	}
	if m == nil {
		if o.model == "" {
			return nothingServed("there is nothing to measure")
		}
		return env.orMisspelt(ctx, o.model, fault.New("model_not_loaded", "%s is not served", strings.ToUpper(o.model)).WithHint("see what is served: mlp status"))
	}
	body, err := sampleBody(*m)
	if err != nil {
		return err
	}
	path := "/predict/" + escapeSegment(m.ModelName)
	var out inference.Prediction
	for range min(20, o.n) { // the warm-up is not measured
		if err := s.probe(ctx, path, body, &out); err != nil {
			return err
		}
	}
	bar := env.countBar("requests", o.n)
	latencies := make([][]float64, o.clients)
	failures := make([]int, o.clients)
	var firstErr error
	var once sync.Once
	begin := time.Now()
	var wg sync.WaitGroup
	for c := range o.clients {
		n := o.n / o.clients
		if c < o.n%o.clients {
			n++
		}
		wg.Go(func() {
			for range n {
				if ctx.Err() != nil {
					return
				}
				t := time.Now()
				var out inference.Prediction
				if err := s.probe(ctx, path, body, &out); err != nil {
					failures[c]++
					once.Do(func() { firstErr = err })
				} else {
					latencies[c] = append(latencies[c], float64(time.Since(t).Microseconds())/1000)
				}
				bar.add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	bar.end()
	var all []float64
	failed := 0
	for c := range latencies {
		all = append(all, latencies[c]...)
		failed += failures[c]
	}
	if ctx.Err() != nil {
		return fault.New("interrupted", "interrupted after %d of %d requests; nothing was changed", len(all)+failed, o.n)
	}
	if len(all) == 0 {
		return firstErr
	}
	sort.Float64s(all)
	p := func(q float64) float64 { return all[min(len(all)-1, int(math.Ceil(q*float64(len(all))))-1)] }
	rate := float64(len(all)) / took.Seconds()
	hist, edges := countLatencies(all)
	doc := map[string]any{"model": m.ModelName, "version": m.ModelVersion, "requests": o.n, "concurrency": o.clients, "errors": failed,
		"p50_ms": p(.5), "p99_ms": p(.99), "max_ms": all[len(all)-1], "rate_per_s": rate, "histogram": map[string]any{"edges_ms": edges, "counts": hist}}
	g := output.Grid{Columns: []string{"Model", "Requests", "p50", "p99", "Max", "Rate", "Errors", "Histogram"}, Doc: doc, Rows: [][]any{{
		m.ModelName, o.n, formatMillis(p(.5)), formatMillis(p(.99)), formatMillis(all[len(all)-1]), fmt.Sprintf("%.0f/s", rate), failed, output.Sparkline(inFloats(hist))}}}
	breach := o.maxP99 != nil && p(.99) > *o.maxP99
	if !(breach || failed > 0) || !env.Format.Structured() {
		if err := env.Printer().Print(g); err != nil {
			return err
		}
		if o.plot && !env.Format.Structured() {
			if err := env.plotHistogram(hist, edges); err != nil {
				return err
			}
		}
	}
	switch {
	case failed > 0:
		return fault.New("requests_failed", "%d of %d requests failed; the first: %v", failed, o.n, firstErr)
	case breach:
		return fault.New("p99_breached", "p99 is %s, above the allowed %s", formatMillis(p(.99)), formatMillis(*o.maxP99))
	}
	return nil
}

func formatMillis(v float64) string { return fmt.Sprintf("%.2f ms", v) }

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// countLatencies counts sorted latencies in at most 12 equal bins up to the 99th percentile; the last bin is open.
func countLatencies(sorted []float64) (counts []int, edges []float64) {
	const bins = 12
	lo, hi := sorted[0], sorted[int(float64(len(sorted)-1)*0.99)]
	if hi <= lo {
		return []int{len(sorted)}, []float64{lo}
	}
	counts, edges = make([]int, bins), make([]float64, bins)
	for i := range edges {
		edges[i] = math.Round((lo+(hi-lo)*float64(i)/bins)*1000) / 1000
	}
	for _, v := range sorted {
		counts[min(bins-1, int((v-lo)/(hi-lo)*bins))]++
	}
	return counts, edges
}

func inFloats(counts []int) []float64 {
	out := make([]float64, len(counts))
	for i, c := range counts {
		out[i] = float64(c)
	}
	return out
}

func (e *Env) plotHistogram(counts []int, edges []float64) error {
	most := 1
	for _, c := range counts {
		most = max(most, c)
	}
	var b strings.Builder
	b.WriteByte('\n')
	for i, c := range counts {
		fmt.Fprintf(&b, "%10s │%s %d\n", formatMillis(edges[i]), strings.Repeat("█", c*40/most), c)
	}
	_, err := fmt.Fprint(e.Out, b.String())
	return err
}
