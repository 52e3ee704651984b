package trackerd

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

const (
	active  = "active"
	deleted = "deleted"
)

type experiment struct {
	ID       string `json:"experiment_id"`
	Name     string `json:"name"`
	Location string `json:"artifact_location"`
	Stage    string `json:"lifecycle_stage"`
	Updated  int64  `json:"last_update_time"`
	Created  int64  `json:"creation_time"`
	Tags     []pair `json:"tags,omitempty"`
}

func toExperiment(e store.Experiment) experiment {
	return experiment{formatInt(e.ID), e.Name, e.ArtifactLocation, e.Stage, e.Updated, e.Created, toPairs(e.Tags)}
}

type experimentAnswer struct {
	Experiment experiment `json:"experiment"`
}

func (s *Server) createExperiment(ctx context.Context, in struct {
	Name     string `json:"name"`
	Location string `json:"artifact_location"`
	Tags     []pair `json:"tags"`
}) (any, error) {
	if err := checkExperimentName("name", in.Name); err != nil {
		return nil, err
	}
	if in.Location != "" {
		// Clients would write to other places themselves; the server hands out only its own folder.
		if err := checkArtifactURI("artifact location", in.Location); err != nil {
			return nil, err
		}
	}
	tags, err := mergeTags(nil, in.Tags, experimentTag)
	if err != nil {
		return nil, err
	}
	id, err := s.q.NextExperimentID(ctx)
	if err != nil {
		return nil, err
	}
	if in.Location == "" {
		in.Location = "mlflow-artifacts:/" + formatInt(id)
	}
	err = s.q.CreateExperiment(ctx, store.CreateExperimentParams{ID: id, Name: in.Name, ArtifactLocation: strings.TrimRight(in.Location, "/"), Now: s.now(), Tags: tags})
	if postgres.IsUnique(err, "experiment_name_key") {
		return nil, alreadyExists("Experiment(name=%s) already exists.", in.Name)
	}
	return map[string]string{"experiment_id": formatInt(id)}, err
}

func checkExperimentName(param, name string) error {
	if strings.TrimSpace(name) == "" {
		return missingParameter(param)
	}
	return checkLength("name", name, maxName)
}

func noExperiment(err error, id string) error {
	return orNotFound(err, "No Experiment with id=%s exists", id)
}

type experimentRef struct {
	ID string `json:"experiment_id"`
}

func (s *Server) getExperiment(ctx context.Context, in experimentRef) (any, error) {
	id, err := experimentID(in.ID)
	if err != nil {
		return nil, err
	}
	e, err := s.q.Experiment(ctx, id)
	if err != nil {
		return nil, noExperiment(err, in.ID)
	}
	return experimentAnswer{toExperiment(e)}, nil
}

func (s *Server) getExperimentByName(ctx context.Context, in struct {
	Name string `json:"experiment_name"`
}) (any, error) {
	if in.Name == "" {
		return nil, missingParameter("experiment_name")
	}
	e, err := s.q.ExperimentByName(ctx, in.Name)
	if err != nil {
		return nil, orNotFound(err, "Could not find experiment with name '%s'", clipValue(in.Name))
	}
	return experimentAnswer{toExperiment(e)}, nil
}

// viewStages are those of a view: active ones unless named otherwise, as a real
// server takes an unknown view too.
func viewStages(view string) []string {
	switch view {
	case "DELETED_ONLY":
		return []string{deleted}
	case "ALL":
		return []string{active, deleted}
	}
	return []string{active}
}

func (s *Server) searchExperiments(ctx context.Context, in struct {
	Max     *integer `json:"max_results"`
	Token   string   `json:"page_token"`
	Filter  string   `json:"filter"`
	OrderBy []string `json:"order_by"`
	View    string   `json:"view_type"`
}) (any, error) {
	p, err := newPage(in.Max, 1000, 50_000, maxRows, in.Token)
	if err != nil {
		return nil, err
	}
	search, err := newSearch(store.ExperimentGrammar, in.Filter, in.OrderBy, p)
	if err != nil {
		return nil, err
	}
	found, more, err := s.q.SearchExperiments(ctx, viewStages(in.View), search)
	if err != nil {
		return nil, err
	}
	var out struct {
		Experiments []experiment `json:"experiments,omitempty"`
		Next        string       `json:"next_page_token,omitempty"`
	}
	for _, e := range found {
		out.Experiments = append(out.Experiments, toExperiment(e))
	}
	out.Next = p.next(len(found), more)
	return out, nil
}

// changeExperiment runs fn under the lock of an experiment in one of the stages.
func (s *Server) changeExperiment(ctx context.Context, ref string, fn func(*store.Queries, store.Experiment) error) (any, error) {
	id, err := experimentID(ref)
	if err != nil {
		return nil, err
	}
	return nil, s.tx(ctx, func(q *store.Queries) error {
		e, err := q.LockExperiment(ctx, id)
		if err != nil {
			return noExperiment(err, ref)
		}
		return fn(q, e)
	})
}

func mustBeActive(what, id, stage string) error {
	if stage != active {
		return invalidParameter("The %s %s must be in the 'active' state. Current state is %s.", what, id, stage)
	}
	return nil
}

func (s *Server) updateExperiment(ctx context.Context, in struct {
	ID   string `json:"experiment_id"`
	Name string `json:"new_name"`
}) (any, error) {
	if err := checkExperimentName("new_name", in.Name); err != nil {
		return nil, err
	}
	return s.changeExperiment(ctx, in.ID, func(q *store.Queries, e store.Experiment) error {
		if e.Stage != active {
			return &refusal{http.StatusConflict, "INVALID_STATE", "Cannot rename a non-active experiment."}
		}
		err := q.RenameExperiment(ctx, store.RenameExperimentParams{ID: e.ID, Name: in.Name, Updated: s.now()})
		if postgres.IsUnique(err, "experiment_name_key") {
			return alreadyExists("Experiment(name=%s) already exists.", in.Name)
		}
		return err
	})
}

// deleteExperiment takes the active runs along; restoring brings just those back.
func (s *Server) deleteExperiment(ctx context.Context, in experimentRef) (any, error) {
	return s.changeExperiment(ctx, in.ID, func(q *store.Queries, e store.Experiment) error {
		if e.Stage != active {
			return notFound("No Experiment with id=%s exists", in.ID)
		}
		now := s.now()
		return errors.Join(
			q.SetExperimentStage(ctx, store.SetExperimentStageParams{ID: e.ID, Stage: deleted, Updated: now}),
			q.DeleteRunsOf(ctx, store.DeleteRunsOfParams{ExperimentID: e.ID, DeletedAt: now}))
	})
}

func (s *Server) restoreExperiment(ctx context.Context, in experimentRef) (any, error) {
	return s.changeExperiment(ctx, in.ID, func(q *store.Queries, e store.Experiment) error {
		if e.Stage != deleted {
			return notFound("No Experiment with id=%s exists", in.ID)
		}
		return errors.Join(
			q.SetExperimentStage(ctx, store.SetExperimentStageParams{ID: e.ID, Stage: active, Updated: s.now()}),
			q.RestoreRunsOf(ctx, store.RestoreRunsOfParams{ExperimentID: e.ID, DeletedAt: e.Updated}))
	})
}

func (s *Server) setExperimentTag(ctx context.Context, in struct {
	experimentRef
	pair
}) (any, error) {
	return s.changeExperiment(ctx, in.ID, func(q *store.Queries, e store.Experiment) error {
		if err := mustBeActive("experiment", in.ID, e.Stage); err != nil {
			return err
		}
		tags, err := mergeTags(e.Tags, []pair{in.pair}, experimentTag)
		if err != nil {
			return err
		}
		return q.SetExperimentTags(ctx, store.SetExperimentTagsParams{ID: e.ID, Tags: tags, Updated: s.now()})
	})
}

func (s *Server) deleteExperimentTag(ctx context.Context, in struct {
	experimentRef
	Key string `json:"key"`
}) (any, error) {
	if err := requireValues("key", in.Key); err != nil {
		return nil, err
	}
	return s.changeExperiment(ctx, in.ID, func(q *store.Queries, e store.Experiment) error {
		if err := mustBeActive("experiment", in.ID, e.Stage); err != nil {
			return err
		}
		if _, ok := e.Tags[in.Key]; !ok {
			return notFound("No tag with name: %s in experiment with id %s", clipValue(in.Key), in.ID)
		}
		delete(e.Tags, in.Key)
		return q.SetExperimentTags(ctx, store.SetExperimentTagsParams{ID: e.ID, Tags: e.Tags, Updated: s.now()})
	})
}

// activeExperiment reads an experiment that something is to be put into and
// keeps it from being deleted until the transaction ends.
func activeExperiment(ctx context.Context, q *store.Queries, ref string) (store.Experiment, error) {
	id, err := experimentID(ref)
	if err != nil {
		return store.Experiment{}, err
	}
	e, err := q.ShareExperiment(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, noExperiment(err, ref)
	}
	if err != nil {
		return e, err
	}
	return e, mustBeActive("experiment", ref, e.Stage)
}
