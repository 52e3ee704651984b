package trackerd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

// runNameTag holds the name of a run once more; the two are kept equal.
const runNameTag = "mlflow.runName"

var runStatuses = []string{"RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"}

type runInfo struct {
	UUID         string `json:"run_uuid"` // older clients read the id here
	ID           string `json:"run_id"`
	ExperimentID string `json:"experiment_id"`
	Name         string `json:"run_name"`
	UserID       string `json:"user_id"`
	Status       string `json:"status"`
	Start        int64  `json:"start_time"`
	End          *int64 `json:"end_time,omitempty"`
	ArtifactURI  string `json:"artifact_uri"`
	Stage        string `json:"lifecycle_stage"`
}

type metric struct {
	Key           string `json:"key"`
	Value         number `json:"value"`
	Timestamp     int64  `json:"timestamp"`
	Step          int64  `json:"step"`
	ModelID       string `json:"model_id,omitempty"`
	RunID         string `json:"run_id,omitempty"`
	DatasetName   string `json:"dataset_name,omitempty"`
	DatasetDigest string `json:"dataset_digest,omitempty"`
}

type dataset struct {
	Name       string `json:"name"`
	Digest     string `json:"digest"`
	SourceType string `json:"source_type"`
	Source     string `json:"source"`
	Schema     string `json:"schema"`
	Profile    string `json:"profile"`
}

type datasetInput struct {
	Tags    []pair  `json:"tags,omitempty"`
	Dataset dataset `json:"dataset"`
}

type modelInput struct {
	ModelID string `json:"model_id"`
}

type modelOutput struct {
	ModelID string  `json:"model_id"`
	Step    integer `json:"step"`
}

type run struct {
	Info runInfo `json:"info"`
	Data struct {
		Metrics []metric `json:"metrics,omitempty"`
		Params  []pair   `json:"params,omitempty"`
		Tags    []pair   `json:"tags,omitempty"`
	} `json:"data"`
	Inputs struct {
		Datasets []datasetInput `json:"dataset_inputs,omitempty"`
		Models   []modelInput   `json:"model_inputs,omitempty"`
	} `json:"inputs"`
	Outputs *struct {
		Models []modelOutput `json:"model_outputs,omitempty"`
	} `json:"outputs,omitempty"`
}

type runAnswer struct {
	Run run `json:"run"`
}

func toInfo(r store.Run) runInfo {
	return runInfo{r.ID, r.ID, formatInt(r.ExperimentID), r.Name, r.UserID, r.Status, r.StartTime, r.EndTime, r.ArtifactUri, r.Stage}
}

// toRuns adds to rows their values in other tables, in three reads for all.
func (s *Server) toRuns(ctx context.Context, q *store.Queries, found []store.Run) ([]run, error) {
	if len(found) == 0 {
		return nil, nil
	}
	out := make([]run, len(found))
	ids := make([]string, len(found))
	at := make(map[string]*run, len(found))
	for i, r := range found {
		ids[i], at[r.ID] = r.ID, &out[i]
		out[i].Info = toInfo(r)
		out[i].Data.Params, out[i].Data.Tags = toPairs(r.Params), toPairs(r.Tags)
	}
	metrics, err := q.LatestMetrics(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, m := range metrics {
		d := &at[m.RunID].Data
		d.Metrics = append(d.Metrics, metric{Key: m.Key, Value: number(m.Value), Timestamp: m.Timestamp, Step: m.Step})
	}
	datasets, err := q.Datasets(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, d := range datasets {
		in := &at[d.RunID].Inputs
		in.Datasets = append(in.Datasets, datasetInput{toPairs(d.Tags), dataset{d.Name, d.Digest, d.SourceType, d.Source, d.Schema, d.Profile}})
	}
	models, err := q.RunModels(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		r := at[m.RunID]
		if !m.Output {
			r.Inputs.Models = append(r.Inputs.Models, modelInput{m.ModelID})
			continue
		}
		if r.Outputs == nil {
			r.Outputs = &struct {
				Models []modelOutput `json:"model_outputs,omitempty"`
			}{}
		}
		r.Outputs.Models = append(r.Outputs.Models, modelOutput{m.ModelID, integer(m.Step)})
	}
	return out, nil
}

func hexID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

func (s *Server) createRun(ctx context.Context, in struct {
	ExperimentID string  `json:"experiment_id"`
	UserID       string  `json:"user_id"`
	Name         string  `json:"run_name"`
	Start        integer `json:"start_time"`
	Tags         []pair  `json:"tags"`
}) (any, error) {
	tags, err := mergeTags(nil, in.Tags, runTag)
	if err != nil {
		return nil, err
	}
	if t, ok := tags[runNameTag]; ok && in.Name != "" && t != in.Name {
		return nil, invalidParameter("Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different values (run_name='%s', mlflow.runName='%s').", clipValue(in.Name), clipValue(t))
	}
	id := hexID()
	for _, name := range []string{in.Name, tags[runNameTag], "run-" + id[:8]} {
		if in.Name = name; name != "" {
			break
		}
	}
	in.Name = truncateRunes(in.Name, maxTag)
	tags[runNameTag] = in.Name
	r := store.Run{ID: id, Name: in.Name, UserID: truncateRunes(in.UserID, maxKey), Status: "RUNNING", StartTime: int64(in.Start), Stage: active, Tags: tags}
	err = s.tx(ctx, func(q *store.Queries) error {
		e, err := activeExperiment(ctx, q, in.ExperimentID)
		if err != nil {
			return err
		}
		r.ExperimentID = e.ID
		r.ArtifactUri = e.ArtifactLocation + "/" + id + "/artifacts"
		return q.CreateRun(ctx, store.CreateRunParams{ID: id, ExperimentID: e.ID, Name: r.Name, UserID: r.UserID,
			Status: r.Status, StartTime: r.StartTime, ArtifactUri: r.ArtifactUri, Tags: tags})
	})
	if err != nil {
		return nil, err
	}
	out := runAnswer{run{Info: toInfo(r)}}
	out.Run.Data.Tags = toPairs(tags)
	return out, nil
}

// runRef names a run; older clients call its id run_uuid.
type runRef struct {
	ID   string `json:"run_id"`
	UUID string `json:"run_uuid"`
}

func (r runRef) id() (string, error) {
	if r.ID == "" {
		r.ID = r.UUID
	}
	return r.ID, requireValues("run_id", r.ID)
}

func noRun(err error, id string) error {
	return orNotFound(err, "Run with id=%s not found", clipValue(id))
}

func (s *Server) getRun(ctx context.Context, in runRef) (any, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	r, err := s.q.Run(ctx, id)
	if err != nil {
		return nil, noRun(err, id)
	}
	runs, err := s.toRuns(ctx, s.q, []store.Run{r})
	if err != nil {
		return nil, err
	}
	return runAnswer{runs[0]}, nil
}

// changeRun runs fn under the lock of a run, which must be active unless
// anyStage is set.
func (s *Server) changeRun(ctx context.Context, ref runRef, anyStage bool, fn func(*store.Queries, store.Run) error) error {
	id, err := ref.id()
	if err != nil {
		return err
	}
	return s.tx(ctx, func(q *store.Queries) error {
		r, err := q.LockRun(ctx, id)
		if err != nil {
			return noRun(err, id)
		}
		if !anyStage {
			if err := mustBeActive("run", id, r.Stage); err != nil {
				return err
			}
		}
		return fn(q, r)
	})
}

func (s *Server) updateRun(ctx context.Context, in struct {
	runRef
	Status string   `json:"status"`
	End    *integer `json:"end_time"`
	Name   string   `json:"run_name"`
}) (any, error) {
	if in.Status != "" && !slices.Contains(runStatuses, in.Status) {
		return nil, invalidValue("status", in.Status, "Valid values are %s.", strings.Join(runStatuses, ", "))
	}
	var info runInfo
	err := s.changeRun(ctx, in.runRef, false, func(q *store.Queries, r store.Run) error {
		if in.Status != "" {
			r.Status = in.Status
		}
		if in.End != nil {
			end := int64(*in.End)
			r.EndTime = &end
		}
		if in.Name != "" {
			r.Name = truncateRunes(in.Name, maxTag)
			r.Tags[runNameTag] = r.Name
		}
		info = toInfo(r)
		return q.UpdateRun(ctx, store.UpdateRunParams{ID: r.ID, Name: r.Name, Status: r.Status, EndTime: r.EndTime, Tags: r.Tags})
	})
	if err != nil {
		return nil, err
	}
	return map[string]runInfo{"run_info": info}, nil
}

func (s *Server) deleteRun(ctx context.Context, in runRef) (any, error) {
	return nil, s.changeRun(ctx, in, true, func(q *store.Queries, r store.Run) error {
		if r.Stage == deleted {
			return nil
		}
		now := s.now()
		return q.SetRunStage(ctx, store.SetRunStageParams{ID: r.ID, Stage: deleted, DeletedAt: &now})
	})
}

func (s *Server) restoreRun(ctx context.Context, in runRef) (any, error) {
	return nil, s.changeRun(ctx, in, true, func(q *store.Queries, r store.Run) error {
		return q.SetRunStage(ctx, store.SetRunStageParams{ID: r.ID, Stage: active})
	})
}

func (s *Server) setRunTag(ctx context.Context, in struct {
	runRef
	pair
}) (any, error) {
	return nil, s.changeRun(ctx, in.runRef, false, func(q *store.Queries, r store.Run) error {
		return setTags(ctx, q, r, []pair{in.pair})
	})
}

func setTags(ctx context.Context, q *store.Queries, r store.Run, add []pair) error {
	tags, err := mergeTags(r.Tags, add, runTag)
	if err != nil {
		return err
	}
	if name := tags[runNameTag]; name != "" {
		r.Name = name
	}
	return q.SetRunTags(ctx, store.SetRunTagsParams{ID: r.ID, Tags: tags, Name: r.Name})
}

func (s *Server) deleteRunTag(ctx context.Context, in struct {
	runRef
	Key string `json:"key"`
}) (any, error) {
	if err := requireValues("key", in.Key); err != nil {
		return nil, err
	}
	return nil, s.changeRun(ctx, in.runRef, false, func(q *store.Queries, r store.Run) error {
		if _, ok := r.Tags[in.Key]; !ok {
			return notFound("No tag with name: %s in run with id %s", clipValue(in.Key), r.ID)
		}
		delete(r.Tags, in.Key)
		return q.SetRunTags(ctx, store.SetRunTagsParams{ID: r.ID, Tags: r.Tags, Name: r.Name})
	})
}

func (s *Server) searchRuns(ctx context.Context, in struct {
	Experiments []string `json:"experiment_ids"`
	Filter      string   `json:"filter"`
	View        string   `json:"run_view_type"`
	Max         *integer `json:"max_results"`
	OrderBy     []string `json:"order_by"`
	Token       string   `json:"page_token"`
}) (any, error) {
	p, err := newPage(in.Max, 1000, 50_000, maxRuns, in.Token)
	if err != nil {
		return nil, err
	}
	search, err := newSearch(store.RunGrammar, in.Filter, in.OrderBy, p)
	if err != nil {
		return nil, err
	}
	ids, err := experimentIDs(in.Experiments)
	if err != nil {
		return nil, err
	}
	found, more, err := s.q.SearchRuns(ctx, ids, viewStages(in.View), search)
	if err != nil {
		return nil, err
	}
	runs, err := s.toRuns(ctx, s.q, found)
	if err != nil {
		return nil, err
	}
	return struct {
		Runs []run  `json:"runs,omitempty"`
		Next string `json:"next_page_token,omitempty"`
	}{runs, p.next(len(found), more)}, nil
}

func experimentIDs(in []string) ([]int64, error) {
	out := make([]int64, len(in))
	var err error
	for i, id := range in {
		var e error
		out[i], e = experimentID(id)
		err = errors.Join(err, e)
	}
	return out, err
}
