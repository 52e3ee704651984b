package trackerd

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

type modelVersion struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Created     int64    `json:"creation_timestamp"`
	Updated     int64    `json:"last_updated_timestamp"`
	Stage       string   `json:"current_stage"`
	Description string   `json:"description"`
	Source      string   `json:"source"`
	RunID       string   `json:"run_id"`
	Status      string   `json:"status"`
	Tags        []pair   `json:"tags,omitempty"`
	RunLink     string   `json:"run_link"`
	Aliases     []string `json:"aliases,omitempty"`
	ModelID     string   `json:"model_id,omitempty"`
}

type versionAnswer struct {
	Version modelVersion `json:"model_version"`
}

type versionKey struct {
	name    string
	version int32
}

func toVersion(v store.ModelVersion, aliases []string) modelVersion {
	return modelVersion{v.Name, formatInt(v.Version), v.Created, v.Updated, v.Stage, v.Description, v.Source, v.RunID, "READY",
		toPairs(v.Tags), v.RunLink, aliases, v.ModelID}
}

// toVersions adds the aliases to rows, in one read for all.
func (s *Server) toVersions(ctx context.Context, q *store.Queries, found []store.ModelVersion) ([]modelVersion, error) {
	if len(found) == 0 {
		return nil, nil
	}
	var names []string
	for _, v := range found {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	aliases, err := q.Aliases(ctx, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	byVersion := map[versionKey][]string{}
	for _, a := range aliases {
		k := versionKey{a.Name, a.Version}
		byVersion[k] = append(byVersion[k], a.Alias)
	}
	out := make([]modelVersion, len(found))
	for i, v := range found {
		out[i] = toVersion(v, byVersion[versionKey{v.Name, v.Version}])
	}
	return out, nil
}

func (s *Server) versionAnswer(ctx context.Context, q *store.Queries, v store.ModelVersion) (versionAnswer, error) {
	vs, err := s.toVersions(ctx, q, []store.ModelVersion{v})
	if err != nil {
		return versionAnswer{}, err
	}
	return versionAnswer{vs[0]}, nil
}

func (s *Server) createVersion(ctx context.Context, in struct {
	modelRef
	Source      string `json:"source"`
	RunID       string `json:"run_id"`
	Tags        []pair `json:"tags"`
	RunLink     string `json:"run_link"`
	Description string `json:"description"`
	ModelID     string `json:"model_id"`
}) (any, error) {
	if err := requireValues("name", in.Name, "source", in.Source); err != nil {
		return nil, err
	}
	tags, err := mergeTags(nil, in.Tags, registryTag)
	if err != nil {
		return nil, err
	}
	if err := checkDescription(&in.Description); err != nil {
		return nil, err
	}
	if err := checkLengths(maxModelName, "run_id", in.RunID, "model_id", in.ModelID, "run_link", in.RunLink); err != nil {
		return nil, err
	}
	var v store.ModelVersion
	prompt := isPrompt(tags)
	err = s.tx(ctx, func(q *store.Queries) error {
		m, err := q.LockRegisteredModel(ctx, in.Name)
		if err != nil {
			return noModel(err, in.Name)
		}
		if isPrompt(m.Tags) != prompt {
			return invalidParameter("'%s' is a %s, which cannot have a version that is a %s.", clipValue(in.Name), kindOf(!prompt), kindOf(prompt))
		}
		o := origin{source: in.Source, runID: in.RunID, modelID: in.ModelID}
		if prompt {
			o, err = promptOrigin(o)
		} else {
			o, err = resolveSource(ctx, q, o)
		}
		if err != nil {
			return err
		}
		now := s.now()
		n, err := q.NextVersion(ctx, store.NextVersionParams{Name: in.Name, Updated: now})
		if err != nil {
			return err
		}
		v, err = q.CreateModelVersion(ctx, store.CreateModelVersionParams{Name: in.Name, Version: n, Now: now, Description: in.Description,
			Source: o.source, DownloadUri: o.download, RunID: o.runID, RunLink: in.RunLink, ModelID: o.modelID, Tags: tags})
		if err != nil || o.modelID == "" || prompt {
			return err
		}
		err = s.recordRegistration(ctx, q, o.modelID, registered{in.Name, n})
		if ref := (*refusal)(nil); in.ModelID == "" && errors.As(err, &ref) && ref.status == http.StatusNotFound {
			return nil // a copy of a version outlives its logged model, as the version does
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if prompt {
		return versionAnswer{toVersion(v, nil)}, nil
	}
	s.notify(ctx, versionCreated, map[string]any{"name": v.Name, "version": formatInt(v.Version), "source": v.Source,
		"run_id": nilIfEmpty(v.RunID), "tags": tags, "description": nilIfEmpty(v.Description)})
	return versionAnswer{toVersion(v, nil)}, nil
}

func nilIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// recordRegistration records on a logged model that a version was registered from it.
func (s *Server) recordRegistration(ctx context.Context, q *store.Queries, id string, r registered) error {
	m, err := q.LockLoggedModel(ctx, id)
	if err != nil {
		return noLoggedModel(err, id)
	}
	var all []registered
	_ = json.Unmarshal([]byte(m.Tags[registrationsTag]), &all) // absent, or a client's own text, which is replaced
	b, err := json.Marshal(append(all, r))
	if err != nil {
		return err
	}
	m.Tags = orEmptyTags(m.Tags)
	m.Tags[registrationsTag] = string(b)
	if err := checkTable(m.Tags); err != nil {
		return err
	}
	return q.SetLoggedModelTags(ctx, store.SetLoggedModelTagsParams{ID: id, Tags: m.Tags, Updated: s.now()})
}

type versionRef struct {
	modelRef
	Version string `json:"version"`
}

func noVersion(err error, ref versionRef) error {
	return orNotFound(err, "Model Version (name=%s, version=%s) not found", clipValue(ref.Name), ref.Version)
}

func (r versionRef) number() (int32, error) {
	if r.Name == "" {
		return 0, missingParameter("name")
	}
	return versionNumber(r.Version)
}

func (s *Server) version(ctx context.Context, ref versionRef) (store.ModelVersion, error) {
	n, err := ref.number()
	if err != nil {
		return store.ModelVersion{}, err
	}
	v, err := s.q.ModelVersion(ctx, store.ModelVersionParams{Name: ref.Name, Version: n})
	return v, noVersion(err, ref)
}

// changeVersion runs fn under the lock of a version and returns its number.
func (s *Server) changeVersion(ctx context.Context, ref versionRef, fn func(*store.Queries, store.ModelVersion) error) (int32, error) {
	n, err := ref.number()
	if err != nil {
		return 0, err
	}
	return n, s.tx(ctx, func(q *store.Queries) error {
		// The model first, always: two changes of one model cannot wait for each other.
		if _, err := q.LockRegisteredModel(ctx, ref.Name); err != nil {
			return noVersion(err, ref)
		}
		v, err := q.LockModelVersion(ctx, store.LockModelVersionParams{Name: ref.Name, Version: n})
		if err != nil {
			return noVersion(err, ref)
		}
		return fn(q, v)
	})
}

func (s *Server) getVersion(ctx context.Context, in versionRef) (any, error) {
	v, err := s.version(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.versionAnswer(ctx, s.q, v)
}

func (s *Server) downloadURI(ctx context.Context, in versionRef) (any, error) {
	v, err := s.version(ctx, in)
	if err != nil {
		return nil, err
	}
	return map[string]string{"artifact_uri": v.DownloadUri}, nil
}

func (s *Server) searchVersions(ctx context.Context, in struct {
	Filter  string   `json:"filter"`
	Max     *integer `json:"max_results"`
	OrderBy []string `json:"order_by"`
	Token   string   `json:"page_token"`
}) (any, error) {
	p, err := newPage(in.Max, 200_000, 200_000, maxRows, in.Token)
	if err != nil {
		return nil, err
	}
	search, err := newSearch(store.ModelVersionGrammar, in.Filter, in.OrderBy, p)
	if err != nil {
		return nil, err
	}
	found, more, err := s.q.SearchModelVersions(ctx, search)
	if err != nil {
		return nil, err
	}
	versions, err := s.toVersions(ctx, s.q, found)
	if err != nil {
		return nil, err
	}
	return struct {
		Versions []modelVersion `json:"model_versions,omitempty"`
		Next     string         `json:"next_page_token,omitempty"`
	}{versions, p.next(len(found), more)}, nil
}

// changedVersion is changeVersion with the version as it then is for an answer.
func (s *Server) changedVersion(ctx context.Context, ref versionRef, fn func(*store.Queries, store.ModelVersion) error) (any, error) {
	var out versionAnswer
	_, err := s.changeVersion(ctx, ref, func(q *store.Queries, v store.ModelVersion) error {
		if err := fn(q, v); err != nil {
			return err
		}
		v, err := q.ModelVersion(ctx, store.ModelVersionParams{Name: v.Name, Version: v.Version})
		if err != nil {
			return err
		}
		out, err = s.versionAnswer(ctx, q, v)
		return err
	})
	return out, err
}

func (s *Server) updateVersion(ctx context.Context, in struct {
	versionRef
	Description string `json:"description"`
}) (any, error) {
	if err := checkDescription(&in.Description); err != nil {
		return nil, err
	}
	return s.changedVersion(ctx, in.versionRef, func(q *store.Queries, v store.ModelVersion) error {
		return q.DescribeModelVersion(ctx, store.DescribeModelVersionParams{Name: v.Name, Version: v.Version, Description: in.Description, Updated: s.now()})
	})
}

// deleteVersion takes the version's aliases along; its number is not given again.
func (s *Server) deleteVersion(ctx context.Context, in versionRef) (any, error) {
	_, err := s.changeVersion(ctx, in, func(q *store.Queries, v store.ModelVersion) error {
		if _, err := q.DeleteModelVersion(ctx, store.DeleteModelVersionParams{Name: v.Name, Version: v.Version}); err != nil {
			return err
		}
		return q.TouchRegisteredModel(ctx, store.TouchRegisteredModelParams{Name: v.Name, Updated: s.now()})
	})
	return nil, err
}

var versionStages = []string{"None", "Staging", "Production", "Archived"}

func canonicalStage(s string) (string, error) {
	for _, st := range versionStages {
		if strings.EqualFold(s, st) {
			return st, nil
		}
	}
	return "", invalidParameter("Invalid Model Version stage: %s. Value must be one of %s.", clipValue(s), strings.Join(versionStages, ", "))
}

// transitionStage moves a version through the stages that aliases have replaced.
func (s *Server) transitionStage(ctx context.Context, in struct {
	versionRef
	Stage   string `json:"stage"`
	Archive bool   `json:"archive_existing_versions"`
}) (any, error) {
	if in.Stage == "" {
		return nil, missingParameter("stage")
	}
	stage, err := canonicalStage(in.Stage)
	if err != nil {
		return nil, err
	}
	if in.Archive && stage != "Staging" && stage != "Production" {
		return nil, invalidParameter("Model version transition cannot archive existing model versions because '%s' is not an Active stage. Valid stages are Staging, Production", stage)
	}
	return s.changedVersion(ctx, in.versionRef, func(q *store.Queries, v store.ModelVersion) error {
		now := s.now()
		if in.Archive {
			if err := q.ArchiveStage(ctx, store.ArchiveStageParams{Name: v.Name, Stage: stage, Version: v.Version, Updated: now}); err != nil {
				return err
			}
		}
		return q.SetStage(ctx, store.SetStageParams{Name: v.Name, Version: v.Version, Stage: stage, Updated: now})
	})
}

func (s *Server) setVersionTag(ctx context.Context, in struct {
	versionRef
	pair
}) (any, error) {
	prompt := false
	n, err := s.changeVersion(ctx, in.versionRef, func(q *store.Queries, v store.ModelVersion) error {
		prompt = isPrompt(v.Tags)
		tags, err := mergeTags(maps.Clone(v.Tags), []pair{in.pair}, registryTag)
		if err != nil {
			return err
		}
		if err := keepsKind(v.Tags, tags); err != nil {
			return err
		}
		return q.SetModelVersionTags(ctx, store.SetModelVersionTagsParams{Name: v.Name, Version: v.Version, Tags: tags, Updated: s.now()})
	})
	if err == nil && !prompt {
		s.notify(ctx, versionTagSet, map[string]any{"name": in.Name, "version": formatInt(n), "key": in.Key, "value": in.Value})
	}
	return nil, err
}

func (s *Server) deleteVersionTag(ctx context.Context, in struct {
	versionRef
	Key string `json:"key"`
}) (any, error) {
	if err := requireValues("key", in.Key); err != nil {
		return nil, err
	}
	prompt := false
	n, err := s.changeVersion(ctx, in.versionRef, func(q *store.Queries, v store.ModelVersion) error {
		prompt = isPrompt(v.Tags)
		tags, err := withoutTag(v.Tags, in.Key)
		if err != nil {
			return err
		}
		return q.SetModelVersionTags(ctx, store.SetModelVersionTagsParams{Name: v.Name, Version: v.Version, Tags: tags, Updated: s.now()})
	})
	if err == nil && !prompt {
		s.notify(ctx, versionTagDeleted, map[string]any{"name": in.Name, "version": formatInt(n), "key": in.Key})
	}
	return nil, err
}
