package trackerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

// Limits of one log-batch request, set by the interface.
const (
	maxBatch       = 1000
	maxBatchParams = 100
	maxInputs      = 1000
)

// metricIn is a metric of a request; pointers mark absent members.
type metricIn struct {
	Key           string   `json:"key"`
	Value         *number  `json:"value"`
	Timestamp     *integer `json:"timestamp"`
	Step          integer  `json:"step"`
	ModelID       string   `json:"model_id"`
	DatasetName   string   `json:"dataset_name"`
	DatasetDigest string   `json:"dataset_digest"`
}

func (m metricIn) check(at string) error {
	switch {
	case m.Key == "":
		return missingParameter(at + "key")
	case m.Value == nil:
		return missingParameter(at + "value")
	case m.Timestamp == nil:
		return missingParameter(at + "timestamp")
	}
	// The interface calls the key a name here, though it came as key.
	if err := checkKey("Metric name", at+"name", m.Key); err != nil {
		return err
	}
	if *m.Timestamp < 0 {
		return invalidValue(at+"timestamp", *m.Timestamp, "metric '%s' (value=%s). Timestamp must be a nonnegative long (64-bit integer) ", clipValue(m.Key), m.Value.python())
	}
	return checkLengths(maxName, at+"model_id", m.ModelID, at+"dataset_name", m.DatasetName, at+"dataset_digest", m.DatasetDigest)
}

// clampFinite limits infinite values, as the real server's database does, so that
// every client reads a number.
func clampFinite(v float64) float64 {
	return min(max(v, -math.MaxFloat64), math.MaxFloat64)
}

// addMetrics records metrics of a run whose row is locked.
func addMetrics(ctx context.Context, q *store.Queries, runID string, ms []metricIn) error {
	if len(ms) == 0 {
		return nil
	}
	all := store.AddMetricsParams{RunID: runID}
	latest := map[string]int{} // key → place in all
	newer := func(a, b int) bool {
		if all.Steps[a] != all.Steps[b] {
			return all.Steps[a] > all.Steps[b]
		}
		if all.Timestamps[a] != all.Timestamps[b] {
			return all.Timestamps[a] > all.Timestamps[b]
		}
		// As Postgres sorts: NaN above all.
		return math.IsNaN(all.Vals[a]) || all.Vals[a] > all.Vals[b]
	}
	ofModel := ms[:0:0]
	for i, m := range ms {
		all.Keys = append(all.Keys, m.Key)
		all.Timestamps = append(all.Timestamps, int64(*m.Timestamp))
		all.Steps = append(all.Steps, int64(m.Step))
		all.Vals = append(all.Vals, clampFinite(float64(*m.Value)))
		if j, ok := latest[m.Key]; !ok || newer(i, j) {
			latest[m.Key] = i
		}
		if m.ModelID != "" {
			ofModel = append(ofModel, m)
		}
	}
	if err := q.AddMetrics(ctx, all); err != nil {
		return err
	}
	last := store.AddLatestParams{RunID: runID}
	for key, i := range latest {
		last.Keys = append(last.Keys, key)
		last.Timestamps = append(last.Timestamps, all.Timestamps[i])
		last.Steps = append(last.Steps, all.Steps[i])
		last.Vals = append(last.Vals, all.Vals[i])
	}
	if err := q.AddLatest(ctx, last); err != nil {
		return err
	}
	return addModelMetrics(ctx, q, runID, ofModel)
}

func addModelMetrics(ctx context.Context, q *store.Queries, runID string, ms []metricIn) error {
	var ids []string
	for _, m := range ms {
		ids = append(ids, m.ModelID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 {
		return nil
	}
	if n, err := q.LoggedModelsExist(ctx, ids); err != nil || int(n) != len(ids) {
		if err == nil {
			err = notFound("A logged model that the metrics name was not found: %s", clipValue(strings.Join(ids, ", ")))
		}
		return err
	}
	// Rows of several runs are taken in one order, so that two batches cannot wait for each other.
	sort.SliceStable(ms, func(i, j int) bool {
		return ms[i].ModelID+"\x00"+ms[i].Key < ms[j].ModelID+"\x00"+ms[j].Key
	})
	for _, m := range ms {
		err := q.AddModelMetric(ctx, store.AddModelMetricParams{
			ModelID: m.ModelID, RunID: runID, Key: m.Key, DatasetName: m.DatasetName, DatasetDigest: m.DatasetDigest,
			Timestamp: int64(*m.Timestamp), Step: int64(m.Step), Value: clampFinite(float64(*m.Value))})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) logMetric(ctx context.Context, in struct {
	runRef
	metricIn
}) (any, error) {
	if _, err := in.id(); err != nil {
		return nil, err
	}
	if err := in.check(""); err != nil {
		return nil, err
	}
	return nil, s.changeRun(ctx, in.runRef, false, func(q *store.Queries, r store.Run) error {
		return addMetrics(ctx, q, r.ID, []metricIn{in.metricIn})
	})
}

func (s *Server) logParam(ctx context.Context, in struct {
	runRef
	pair
}) (any, error) {
	return nil, s.changeRun(ctx, in.runRef, false, func(q *store.Queries, r store.Run) error {
		return addParams(ctx, q, r, []pair{in.pair})
	})
}

// addParams records parameters, which do not change once recorded.
func addParams(ctx context.Context, q *store.Queries, r store.Run, add []pair) error {
	params, err := mergeParams(" for run ID='"+r.ID+"'", r.Params, add)
	if err != nil {
		return err
	}
	return q.SetRunParams(ctx, store.SetRunParamsParams{ID: r.ID, Params: params})
}

// mergeParams adds parameters to those of a run or logged model; owner names it in a refusal.
func mergeParams(owner string, have store.Tags, add []pair) (store.Tags, error) {
	var err error
	return mergeTags(have, add, func(p pair) (pair, error) {
		if p, err = checkParam(p); err != nil {
			return p, err
		}
		if old, ok := have[p.Key]; ok && old != p.Value {
			return p, invalidParameter("Changing param values is not allowed. Param with key='%s' was already logged with value='%s'%s. Attempted logging new value '%s'.", p.Key, clipValue(old), owner, clipValue(p.Value))
		}
		return p, nil
	})
}

func (s *Server) logBatch(ctx context.Context, in struct {
	runRef
	Metrics []metricIn `json:"metrics"`
	Params  []pair     `json:"params"`
	Tags    []pair     `json:"tags"`
}) (any, error) {
	if _, err := in.id(); err != nil {
		return nil, err
	}
	for _, b := range []struct {
		name    string
		n, most int
	}{{"metrics", len(in.Metrics), maxBatch}, {"params", len(in.Params), maxBatchParams}, {"tags", len(in.Tags), maxBatchParams},
		{"metrics, params, and tags", len(in.Metrics) + len(in.Params) + len(in.Tags), maxBatch}} {
		if b.n > b.most {
			return nil, invalidParameter("A batch logging request can contain at most %d %s. Got %d %s. Please split up %s across multiple requests and try again.", b.most, b.name, b.n, b.name, b.name)
		}
	}
	for i, m := range in.Metrics {
		if err := m.check(fmt.Sprintf("metrics[%d].", i)); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{}
	for i, t := range in.Tags {
		at := fmt.Sprintf("tags[%d].key", i)
		if err := checkKey(at, at, t.Key); err != nil {
			return nil, err
		}
	}
	for i, p := range in.Params {
		if err := checkKey("Param key", fmt.Sprintf("params[%d].key", i), p.Key); err != nil {
			return nil, err
		}
		if seen[p.Key] {
			return nil, invalidParameter("Duplicate parameter keys have been submitted: ['%s']. Please ensure the request contains only one param value per param key.", clipValue(p.Key))
		}
		seen[p.Key] = true
	}
	return nil, s.changeRun(ctx, in.runRef, false, func(q *store.Queries, r store.Run) error {
		if len(in.Params) > 0 {
			if err := addParams(ctx, q, r, in.Params); err != nil {
				return err
			}
		}
		if len(in.Tags) > 0 {
			if err := setTags(ctx, q, r, in.Tags); err != nil {
				return err
			}
		}
		return addMetrics(ctx, q, r.ID, in.Metrics)
	})
}

func (s *Server) metricHistory(ctx context.Context, in struct {
	runRef
	Key   string   `json:"metric_key"`
	Token string   `json:"page_token"`
	Max   *integer `json:"max_results"`
}) (any, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	if in.Key == "" {
		return nil, missingParameter("metric_key")
	}
	p, err := newPage(in.Max, maxRows, 1_000_000, maxRows, in.Token)
	if err != nil {
		return nil, err
	}
	found, err := s.q.MetricHistory(ctx, store.MetricHistoryParams{RunID: id, Key: in.Key, Limit: int32(p.limit + 1), Offset: int32(p.offset)})
	if err != nil {
		return nil, err
	}
	more := len(found) > p.limit
	found = found[:min(len(found), p.limit)]
	var out struct {
		Metrics []metric `json:"metrics,omitempty"`
		Next    string   `json:"next_page_token,omitempty"`
	}
	for _, m := range found {
		out.Metrics = append(out.Metrics, metric{Key: m.Key, Value: number(m.Value), Timestamp: m.Timestamp, Step: m.Step})
	}
	out.Next = p.next(len(found), more)
	return out, nil
}

func (s *Server) logInputs(ctx context.Context, in struct {
	runRef
	Datasets []datasetInput `json:"datasets"`
	Models   []modelInput   `json:"models"`
}) (any, error) {
	if n := len(in.Datasets) + len(in.Models); n > maxInputs {
		return nil, invalidParameter("A request can contain at most %d inputs. Got %d.", maxInputs, n)
	}
	for i, d := range in.Datasets {
		at := fmt.Sprintf("datasets[%d].dataset.", i)
		if err := requireValues(at+"name", d.Dataset.Name); err != nil {
			return nil, err
		}
		if err := d.Dataset.check(); err != nil {
			return nil, err
		}
	}
	return nil, s.changeRun(ctx, in.runRef, false, func(q *store.Queries, r store.Run) error {
		for _, d := range in.Datasets {
			tags, err := mergeTags(nil, d.Tags, runTag)
			if err != nil {
				return err
			}
			err = q.AddDataset(ctx, store.AddDatasetParams{RunID: r.ID, Name: d.Dataset.Name, Digest: d.Dataset.Digest, SourceType: d.Dataset.SourceType,
				Source: d.Dataset.Source, Schema: d.Dataset.Schema, Profile: d.Dataset.Profile, Tags: tags})
			if err != nil {
				return err
			}
		}
		for _, m := range in.Models {
			if err := addRunModel(ctx, q, store.AddRunModelParams{RunID: r.ID, ModelID: m.ModelID}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d dataset) check() error {
	return errors.Join(
		checkLength("name", d.Name, maxName), checkLength("digest", d.Digest, maxDigest), checkLength("source", d.Source, maxSource),
		checkLength("schema", d.Schema, maxSchema), checkLength("profile", d.Profile, maxProfile))
}

func addRunModel(ctx context.Context, q *store.Queries, p store.AddRunModelParams) error {
	if err := requireValues("model_id", p.ModelID); err != nil {
		return err
	}
	if err := checkLength("model_id", p.ModelID, maxName); err != nil {
		return err
	}
	return q.AddRunModel(ctx, p)
}

func (s *Server) logOutputs(ctx context.Context, in struct {
	runRef
	Models []modelOutput `json:"models"`
}) (any, error) {
	if n := len(in.Models); n > maxInputs {
		return nil, invalidParameter("A request can contain at most %d outputs. Got %d.", maxInputs, n)
	}
	return nil, s.changeRun(ctx, in.runRef, false, func(q *store.Queries, r store.Run) error {
		for _, m := range in.Models {
			if err := addRunModel(ctx, q, store.AddRunModelParams{RunID: r.ID, Output: true, ModelID: m.ModelID, Step: int64(m.Step)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// logModel is how clients before version 3 record that a run holds a model: in
// a tag with a JSON list.
func (s *Server) logModel(ctx context.Context, in struct {
	runRef
	Model string `json:"model_json"`
}) (any, error) {
	if in.Model == "" {
		return nil, missingParameter("model_json")
	}
	var model map[string]json.RawMessage
	if json.Unmarshal([]byte(in.Model), &model) != nil {
		return nil, invalidParameter("Malformed model info. \n %s \n is not a valid JSON.", clipValue(in.Model))
	}
	var lacking []string
	for _, k := range []string{"artifact_path", "flavors", "run_id", "utc_time_created"} {
		if _, ok := model[k]; !ok {
			lacking = append(lacking, k)
		}
	}
	if len(lacking) > 0 {
		return nil, invalidParameter("Model json is missing mandatory fields: %s", strings.Join(lacking, ", "))
	}
	const history = "mlflow.log-model.history"
	return nil, s.changeRun(ctx, in.runRef, false, func(q *store.Queries, r store.Run) error {
		var list []json.RawMessage
		if h := r.Tags[history]; h != "" && json.Unmarshal([]byte(h), &list) != nil {
			return invalidParameter("The tag %s of run %s is not a JSON list.", history, r.ID)
		}
		b, err := json.Marshal(append(list, json.RawMessage(in.Model)))
		if err != nil {
			return err
		}
		// Longer than other tags may be, since it grows with each model.
		r.Tags[history] = string(b)
		if err := checkTable(r.Tags); err != nil {
			return err
		}
		return q.SetRunTags(ctx, store.SetRunTagsParams{ID: r.ID, Tags: r.Tags, Name: r.Name})
	})
}
