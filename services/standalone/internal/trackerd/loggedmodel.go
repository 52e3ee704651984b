package trackerd

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

// registrationsTag of a logged model lists the versions made from it, as JSON.
const registrationsTag = "mlflow.modelVersions"

const (
	modelPending = "LOGGED_MODEL_PENDING"
	modelReady   = "LOGGED_MODEL_READY"
	modelFailed  = "LOGGED_MODEL_UPLOAD_FAILED"
)

type registration struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type loggedModel struct {
	Info struct {
		ID            string         `json:"model_id"`
		ExperimentID  string         `json:"experiment_id"`
		Name          string         `json:"name"`
		Created       int64          `json:"creation_timestamp_ms"`
		Updated       int64          `json:"last_updated_timestamp_ms"`
		ArtifactURI   string         `json:"artifact_uri"`
		Status        string         `json:"status"`
		Type          string         `json:"model_type"`
		SourceRunID   string         `json:"source_run_id"`
		Tags          []pair         `json:"tags,omitempty"`
		Registrations []registration `json:"registrations,omitempty"`
	} `json:"info"`
	Data struct {
		Params  []pair   `json:"params,omitempty"`
		Metrics []metric `json:"metrics,omitempty"`
	} `json:"data"`
}

type loggedModelAnswer struct {
	Model loggedModel `json:"model"`
}

// registered is an entry of registrationsTag.
type registered struct {
	Name    string `json:"name"`
	Version int32  `json:"version"`
}

func (s *Server) toLoggedModels(ctx context.Context, q *store.Queries, found []store.LoggedModel) ([]loggedModel, error) {
	if len(found) == 0 {
		return nil, nil
	}
	out := make([]loggedModel, len(found))
	ids := make([]string, len(found))
	at := make(map[string]*loggedModel, len(found))
	for i, m := range found {
		o := &out[i]
		ids[i], at[m.ID] = m.ID, o
		o.Info.ID, o.Info.ExperimentID, o.Info.Name = m.ID, formatInt(m.ExperimentID), m.Name
		o.Info.Created, o.Info.Updated, o.Info.ArtifactURI = m.Created, m.Updated, m.ArtifactUri
		o.Info.Status, o.Info.Type, o.Info.SourceRunID = m.Status, m.ModelType, m.SourceRunID
		o.Info.Tags, o.Data.Params = toPairs(m.Tags), toPairs(m.Params)
		var regs []registered
		if json.Unmarshal([]byte(m.Tags[registrationsTag]), &regs) == nil { // a client may have set the tag
			for _, r := range regs {
				o.Info.Registrations = append(o.Info.Registrations, registration{r.Name, formatInt(r.Version)})
			}
		}
	}
	metrics, err := q.LoggedModelMetrics(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, m := range metrics {
		d := &at[m.ModelID].Data
		d.Metrics = append(d.Metrics, metric{m.Key, number(m.Value), m.Timestamp, m.Step, m.ModelID, m.RunID, m.DatasetName, m.DatasetDigest})
	}
	return out, nil
}

func (s *Server) loggedModelAnswer(ctx context.Context, q *store.Queries, m store.LoggedModel) (loggedModelAnswer, error) {
	models, err := s.toLoggedModels(ctx, q, []store.LoggedModel{m})
	if err != nil {
		return loggedModelAnswer{}, err
	}
	return loggedModelAnswer{models[0]}, nil
}

func (s *Server) createLoggedModel(ctx context.Context, in struct {
	ExperimentID string `json:"experiment_id"`
	Name         string `json:"name"`
	Type         string `json:"model_type"`
	SourceRunID  string `json:"source_run_id"`
	Params       []pair `json:"params"`
	Tags         []pair `json:"tags"`
}) (any, error) {
	id := "m-" + hexID()
	if in.Name == "" {
		in.Name = "model-" + id[2:10]
	}
	if strings.ContainsAny(in.Name, `/:.%"'`) {
		return nil, invalidParameter("Invalid model name ('%s') provided. Model name must be a non-empty string and cannot contain the following characters: ('/', ':', '.', '%%', '\"', \"'\")", clipValue(in.Name))
	}
	if err := checkLength("name", in.Name, maxName); err != nil {
		return nil, err
	}
	if err := checkLengths(maxName, "model_type", in.Type, "source_run_id", in.SourceRunID); err != nil {
		return nil, err
	}
	tags, err := mergeTags(nil, in.Tags, runTag)
	if err != nil {
		return nil, err
	}
	params, err := mergeParams("", nil, in.Params)
	if err != nil {
		return nil, err
	}
	var out loggedModelAnswer
	err = s.tx(ctx, func(q *store.Queries) error {
		e, err := activeExperiment(ctx, q, in.ExperimentID)
		if err != nil {
			return err
		}
		err = q.CreateLoggedModel(ctx, store.CreateLoggedModelParams{
			ID: id, ExperimentID: e.ID, Name: in.Name, Status: modelPending, ModelType: in.Type, SourceRunID: in.SourceRunID,
			ArtifactUri: e.ArtifactLocation + "/models/" + id + "/artifacts", Created: s.now(), Tags: tags, Params: params})
		if err != nil {
			return err
		}
		m, err := q.LoggedModel(ctx, id)
		if err != nil {
			return err
		}
		out, err = s.loggedModelAnswer(ctx, q, m)
		return err
	})
	return out, err
}

type loggedModelRef struct {
	ID string `json:"model_id"`
}

func noLoggedModel(err error, id string) error {
	return orNotFound(err, "Logged model with ID '%s' not found.", clipValue(id))
}

func (s *Server) getLoggedModel(ctx context.Context, in loggedModelRef) (any, error) {
	m, err := s.q.LoggedModel(ctx, in.ID)
	if err != nil {
		return nil, noLoggedModel(err, in.ID)
	}
	return s.loggedModelAnswer(ctx, s.q, m)
}

// changeLoggedModel runs fn under the lock of a logged model.
func (s *Server) changeLoggedModel(ctx context.Context, id string, fn func(*store.Queries, store.LoggedModel) error) error {
	return s.tx(ctx, func(q *store.Queries) error {
		m, err := q.LockLoggedModel(ctx, id)
		if err != nil {
			return noLoggedModel(err, id)
		}
		return fn(q, m)
	})
}

func (s *Server) finalizeLoggedModel(ctx context.Context, in struct {
	loggedModelRef
	Status json.RawMessage `json:"status"`
}) (any, error) {
	status, err := modelStatus(in.Status)
	if err != nil {
		return nil, err
	}
	var out loggedModelAnswer
	err = s.changeLoggedModel(ctx, in.ID, func(q *store.Queries, m store.LoggedModel) error {
		m.Status, m.Updated = status, s.now()
		if err := q.SetLoggedModelStatus(ctx, store.SetLoggedModelStatusParams{ID: m.ID, Status: m.Status, Updated: m.Updated}); err != nil {
			return err
		}
		out, err = s.loggedModelAnswer(ctx, q, m)
		return err
	})
	return out, err
}

// modelStatus reads a status, which protobuf's JSON allows as a number too.
func modelStatus(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", missingParameter("status")
	}
	name := strings.Trim(string(raw), `"`)
	known := []string{"LOGGED_MODEL_STATUS_UNSPECIFIED", modelPending, modelReady, modelFailed}
	if n, err := strconv.Atoi(name); err == nil && 0 < n && n < len(known) {
		return known[n], nil
	}
	if !slices.Contains(known[1:], name) {
		return "", invalidValue("status", name, "Valid values are %s.", strings.Join(known[1:], ", "))
	}
	return name, nil
}

// deleteLoggedModel hides a model; its artifacts stay for the versions registered from it.
func (s *Server) deleteLoggedModel(ctx context.Context, in loggedModelRef) (any, error) {
	return nil, s.changeLoggedModel(ctx, in.ID, func(q *store.Queries, m store.LoggedModel) error {
		return q.DeleteLoggedModel(ctx, store.DeleteLoggedModelParams{ID: m.ID, Updated: s.now()})
	})
}

func (s *Server) setLoggedModelTags(ctx context.Context, in struct {
	loggedModelRef
	Tags []pair `json:"tags"`
}) (any, error) {
	return nil, s.changeLoggedModel(ctx, in.ID, func(q *store.Queries, m store.LoggedModel) error {
		tags, err := mergeTags(m.Tags, in.Tags, runTag)
		if err != nil {
			return err
		}
		return q.SetLoggedModelTags(ctx, store.SetLoggedModelTagsParams{ID: m.ID, Tags: tags, Updated: s.now()})
	})
}

func (s *Server) deleteLoggedModelTag(ctx context.Context, in struct {
	loggedModelRef
	Key string `json:"tag_key"`
}) (any, error) {
	return nil, s.changeLoggedModel(ctx, in.ID, func(q *store.Queries, m store.LoggedModel) error {
		if _, ok := m.Tags[in.Key]; !ok {
			return notFound("No tag with key '%s' found for model with ID '%s'.", clipValue(in.Key), m.ID)
		}
		delete(m.Tags, in.Key)
		return q.SetLoggedModelTags(ctx, store.SetLoggedModelTagsParams{ID: m.ID, Tags: m.Tags, Updated: s.now()})
	})
}

func (s *Server) logLoggedModelParams(ctx context.Context, in struct {
	loggedModelRef
	Params []pair `json:"params"`
}) (any, error) {
	return nil, s.changeLoggedModel(ctx, in.ID, func(q *store.Queries, m store.LoggedModel) error {
		params, err := mergeParams("", m.Params, in.Params)
		if err != nil {
			return err
		}
		return q.SetLoggedModelParams(ctx, store.SetLoggedModelParamsParams{ID: m.ID, Params: params})
	})
}

func (s *Server) searchLoggedModels(ctx context.Context, in struct {
	Experiments []string `json:"experiment_ids"`
	Filter      string   `json:"filter"`
	Datasets    []struct {
		Name   string `json:"dataset_name"`
		Digest string `json:"dataset_digest"`
	} `json:"datasets"`
	Max     *integer `json:"max_results"`
	OrderBy []struct {
		Field     string `json:"field_name"`
		Ascending *bool  `json:"ascending"`
		Name      string `json:"dataset_name"`
		Digest    string `json:"dataset_digest"`
	} `json:"order_by"`
	Token string `json:"page_token"`
}) (any, error) {
	if len(in.Experiments) == 0 {
		return nil, missingParameter("experiment_ids")
	}
	p, err := newPage(in.Max, 50, 50_000, maxRuns, in.Token)
	if err != nil {
		return nil, err
	}
	if len(in.Datasets) > maxInputs {
		return nil, invalidParameter("At most %d datasets can be named. Got %d.", maxInputs, len(in.Datasets))
	}
	var scopes, orderScopes []store.MetricScope
	for _, d := range in.Datasets {
		if d.Name == "" {
			return nil, invalidParameter("`dataset_name` in the `datasets` clause must be specified.")
		}
		scopes = append(scopes, store.MetricScope{Name: d.Name, Digest: d.Digest})
	}
	var order []string
	for _, o := range in.OrderBy {
		dir := " ASC"
		if o.Ascending != nil && !*o.Ascending {
			dir = " DESC"
		}
		order = append(order, o.Field+dir)
		orderScopes = append(orderScopes, store.MetricScope{Name: o.Name, Digest: o.Digest})
	}
	search, err := newSearch(store.LoggedModelGrammar, in.Filter, order, p)
	if err != nil {
		return nil, err
	}
	ids, err := experimentIDs(in.Experiments)
	if err != nil {
		return nil, err
	}
	found, more, err := s.q.SearchLoggedModels(ctx, ids, search, scopes, orderScopes)
	if err != nil {
		return nil, err
	}
	models, err := s.toLoggedModels(ctx, s.q, found)
	if err != nil {
		return nil, err
	}
	return struct {
		Models []loggedModel `json:"models,omitempty"`
		Next   string        `json:"next_page_token,omitempty"`
	}{models, p.next(len(found), more)}, nil
}
