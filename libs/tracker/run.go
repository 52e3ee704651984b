package tracker

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// RunStatus is the state of a run.
type RunStatus string

// The states of a run; the last three are terminal.
const (
	Running   RunStatus = "RUNNING"
	Scheduled RunStatus = "SCHEDULED"
	Finished  RunStatus = "FINISHED"
	Failed    RunStatus = "FAILED"
	Killed    RunStatus = "KILLED"
)

// Run is one run with the newest value of each metric.
type Run struct {
	ID           string
	ExperimentID string
	Name         string
	UserID       string
	Status       RunStatus
	Start        time.Time
	End          time.Time // zero while it runs
	ArtifactURI  string
	Deleted      bool
	Metrics      map[string]float64
	Params       map[string]string
	Tags         map[string]string
}

// Metric is one measurement. A zero Time means now.
type Metric struct {
	Key   string
	Value float64 // may be NaN or infinite
	Time  time.Time
	Step  int64
}

type metricWire struct {
	Key   string  `json:"key"`
	Value float   `json:"value"`
	Time  milli   `json:"timestamp"`
	Step  whole   `json:"step"`
	Run   *string `json:"run_id,omitempty"`
}

// float is a number that may be written as "NaN", "Infinity" or "-Infinity".
type float float64

func (f *float) UnmarshalJSON(b []byte) error {
	s := string(b)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	*f = float(v)
	return err
}

func (f float) MarshalJSON() ([]byte, error) {
	switch v := float64(f); {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(v)
	}
}

type runWire struct {
	Info struct {
		ID           string    `json:"run_id"`
		Name         string    `json:"run_name"`
		ExperimentID string    `json:"experiment_id"`
		UserID       string    `json:"user_id"`
		Status       RunStatus `json:"status"`
		Start        milli     `json:"start_time"`
		End          milli     `json:"end_time"`
		ArtifactURI  string    `json:"artifact_uri"`
		Stage        string    `json:"lifecycle_stage"`
	} `json:"info"`
	Data struct {
		Metrics []metricWire `json:"metrics"`
		Params  []pair       `json:"params"`
		Tags    []pair       `json:"tags"`
	} `json:"data"`
}

func (w runWire) run() Run {
	i := w.Info
	r := Run{
		i.ID, i.ExperimentID, i.Name, i.UserID, i.Status, i.Start.Time, i.End.Time, i.ArtifactURI, i.Stage == "deleted",
		make(map[string]float64, len(w.Data.Metrics)), fromPairs(w.Data.Params), fromPairs(w.Data.Tags),
	}
	for _, m := range w.Data.Metrics {
		r.Metrics[m.Key] = float64(m.Value)
	}
	return r
}

// NewRun holds the initial values of a run. A zero Start means now.
type NewRun struct {
	ExperimentID string
	Name         string
	Start        time.Time
	Tags         map[string]string
}

// CreateRun starts a run.
func (c *Client) CreateRun(ctx context.Context, n NewRun) (Run, error) {
	if n.Start.IsZero() {
		n.Start = time.Now()
	}
	in := struct {
		ExperimentID string `json:"experiment_id"`
		Name         string `json:"run_name,omitempty"`
		Start        milli  `json:"start_time"`
		Tags         []pair `json:"tags,omitempty"`
	}{n.ExperimentID, n.Name, milli{n.Start}, toPairs(n.Tags)}
	var out struct {
		Run runWire `json:"run"`
	}
	err := c.post(ctx, "runs/create", in, &out)
	return out.Run.run(), err
}

// UpdateRun changes the state of a run; a zero end leaves its end time alone.
func (c *Client) UpdateRun(ctx context.Context, runID string, status RunStatus, end time.Time) error {
	in := struct {
		ID     string    `json:"run_id"`
		Status RunStatus `json:"status"`
		End    *milli    `json:"end_time,omitempty"`
	}{ID: runID, Status: status}
	if !end.IsZero() {
		in.End = &milli{end}
	}
	return c.post(ctx, "runs/update", in, nil)
}

// Limits of one log-batch request, set by the server.
const (
	maxBatchMetrics = 1000
	maxBatchPairs   = 100
)

// LogBatch records metrics, parameters and tags, in as many requests as the server's limits
// require, parameters first. After an error, earlier requests remain recorded; parameters
// cannot be changed once recorded.
func (c *Client) LogBatch(ctx context.Context, runID string, metrics []Metric, params, tags map[string]string) error {
	type batch struct {
		ID      string       `json:"run_id"`
		Metrics []metricWire `json:"metrics,omitempty"`
		Params  []pair       `json:"params,omitempty"`
		Tags    []pair       `json:"tags,omitempty"`
	}
	send := func(b batch) error {
		b.ID = runID
		return c.post(ctx, "runs/log-batch", b, nil)
	}
	now := time.Now()
	wire := make([]metricWire, len(metrics))
	for i, m := range metrics {
		if m.Time.IsZero() {
			m.Time = now
		}
		wire[i] = metricWire{Key: m.Key, Value: float(m.Value), Time: milli{m.Time}, Step: whole(m.Step)}
	}
	ps, ts := toPairs(params), toPairs(tags)
	if len(wire)+len(ps)+len(ts) == 0 {
		return nil
	}
	// What most runs record fits into one request, which is then all or nothing.
	if len(ps) <= maxBatchPairs && len(ts) <= maxBatchPairs && len(wire)+len(ps)+len(ts) <= maxBatchMetrics {
		return send(batch{Metrics: wire, Params: ps, Tags: ts})
	}
	for chunk := range slices.Chunk(ps, maxBatchPairs) {
		if err := send(batch{Params: chunk}); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(ts, maxBatchPairs) {
		if err := send(batch{Tags: chunk}); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(wire, maxBatchMetrics) {
		if err := send(batch{Metrics: chunk}); err != nil {
			return err
		}
	}
	return nil
}

// SetTag sets a tag of a run.
func (c *Client) SetTag(ctx context.Context, runID, key, value string) error {
	return c.post(ctx, "runs/set-tag", map[string]string{"run_id": runID, "key": key, "value": value}, nil)
}

// GetRun reads a run, also a deleted one.
func (c *Client) GetRun(ctx context.Context, runID string) (Run, error) {
	var out struct {
		Run runWire `json:"run"`
	}
	err := c.get(ctx, "runs/get", url.Values{"run_id": {runID}}, &out)
	return out.Run.run(), err
}

// RunQuery selects runs. Filter and OrderBy are in the server's own grammar,
// such as "metrics.rmse < 0.5 and tags.tenant = 'a'" and "metrics.rmse ASC";
// quote values with [Quote].
type RunQuery struct {
	ExperimentIDs []string
	Filter        string
	OrderBy       []string
	PageSize      int // at most 50,000; 0 means 100
	PageToken     string
	DeletedToo    bool
}

// SearchRuns reads one page of the runs that match; next is empty after the last.
func (c *Client) SearchRuns(ctx context.Context, q RunQuery) (runs []Run, next string, err error) {
	in := struct {
		IDs       []string `json:"experiment_ids"`
		Filter    string   `json:"filter,omitempty"`
		View      string   `json:"run_view_type"`
		Max       int      `json:"max_results"`
		OrderBy   []string `json:"order_by,omitempty"`
		PageToken string   `json:"page_token,omitempty"`
	}{q.ExperimentIDs, q.Filter, "ACTIVE_ONLY", q.PageSize, q.OrderBy, q.PageToken}
	if q.DeletedToo {
		in.View = "ALL"
	}
	if in.Max == 0 {
		in.Max = 100
	}
	var out struct {
		Runs []runWire `json:"runs"`
		Next string    `json:"next_page_token"`
	}
	if err := c.search(ctx, "runs/search", in, &out); err != nil {
		return nil, "", err
	}
	runs = make([]Run, len(out.Runs))
	for i, r := range out.Runs {
		runs[i] = r.run()
	}
	return runs, out.Next, nil
}

// Runs yields every run that matches, page by page; an error ends it.
func (c *Client) Runs(ctx context.Context, q RunQuery) iter.Seq2[Run, error] {
	return iteratePages(q.PageToken, func(token string) ([]Run, string, error) {
		q.PageToken = token
		return c.SearchRuns(ctx, q)
	})
}

// MetricHistory yields every recorded value of a metric, oldest first.
func (c *Client) MetricHistory(ctx context.Context, runID, key string) iter.Seq2[Metric, error] {
	return iteratePages("", func(token string) ([]Metric, string, error) {
		q := url.Values{"run_id": {runID}, "metric_key": {key}, "max_results": {"10000"}}
		if token != "" {
			q.Set("page_token", token)
		}
		var out struct {
			Metrics []metricWire `json:"metrics"`
			Next    string       `json:"next_page_token"`
		}
		if err := c.get(ctx, "metrics/get-history", q, &out); err != nil {
			return nil, "", err
		}
		ms := make([]Metric, len(out.Metrics))
		for i, m := range out.Metrics {
			ms[i] = Metric{m.Key, float64(m.Value), m.Time.Time, int64(m.Step)}
		}
		return ms, out.Next, nil
	})
}

// iteratePages joins pages into one sequence. A server that returns the same token twice
// would never end; that is an error.
func iteratePages[T any](token string, read func(token string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			items, next, err := read(token)
			if err == nil && next != "" && next == token {
				err = fmt.Errorf("tracker: the server gave page token %.80q twice", next)
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, it := range items {
				if !yield(it, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			token = next
		}
	}
}

// Metrics turns a table of values into metrics of one instant, in the order of their names.
func Metrics(values map[string]float64, at time.Time) []Metric {
	out := make([]Metric, 0, len(values))
	for _, k := range slices.Sorted(maps.Keys(values)) {
		out = append(out, Metric{Key: k, Value: values[k], Time: at})
	}
	return out
}
