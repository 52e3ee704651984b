package trackerd

import (
	"context"
	"encoding/json"
	"net/url"
	"path"
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

// checkArtifactURI refuses addresses of local files and such that climb.
func checkArtifactURI(uri string) error {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" || u.Scheme == "file" || u.Scheme == "local" {
		return invalidParameter("Invalid artifact location: '%s'. Local paths are not served; use mlflow-artifacts:/<path>.", clipValue(uri))
	}
	if err := checkLength("artifact location", uri, maxModelName); err != nil {
		return err
	}
	p := u.Path + u.Opaque
	for q := ""; p != q; {
		q = p
		if slices.Contains(strings.Split(strings.ReplaceAll(p, `\`, "/"), "/"), "..") || strings.ContainsRune(p, 0) {
			return invalidParameter("Invalid artifact location: '%s'. An absolute path must be provided without relative path references present.", clipValue(uri))
		}
		if d, err := url.PathUnescape(p); err == nil {
			p = d
		}
	}
	return nil
}

// uriWithin reports whether the address uri is root or below it.
func uriWithin(uri, root string) bool {
	return uri == root || strings.HasPrefix(uri, strings.TrimRight(root, "/")+"/")
}

// downloadAddress is where the files of a version's source are. As in the real
// registry, files of a run or logged model can only be registered by naming it.
func (s *Server) downloadAddress(ctx context.Context, q *store.Queries, source, runID, modelID string) (string, error) {
	if err := checkArtifactURI(source); err != nil {
		return "", err
	}
	unnamed := func(param string) error {
		return invalidParameter("Invalid model version source: '%s'. The %s request parameter must identify the resource that contains the source.", clipValue(source), param)
	}
	scheme, rest, _ := strings.Cut(source, ":")
	switch scheme {
	case "models":
		id, sub, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
		if !strings.HasPrefix(id, "m-") || modelID != id {
			return "", unnamed("model_id")
		}
		m, err := q.LoggedModel(ctx, id)
		if err != nil {
			return "", noLoggedModel(err, id)
		}
		return strings.TrimRight(m.ArtifactUri+"/"+sub, "/"), nil
	case "runs":
		if id, _, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/"); id == "" || id != runID {
			return "", unnamed("run_id")
		}
		if _, err := q.Run(ctx, runID); err != nil {
			return "", noRun(err, runID)
		}
		return source, nil
	case "mlflow-artifacts":
		u, err := url.Parse(source)
		if err != nil || path.Clean(u.Path) != strings.TrimRight(u.Path, "/") {
			return "", invalidParameter("Invalid model version source: '%s'.", clipValue(source))
		}
		if modelID != "" {
			if m, err := q.LoggedModel(ctx, modelID); err == nil && uriWithin(source, m.ArtifactUri) {
				return source, nil
			}
		}
		if runID != "" {
			if r, err := q.Run(ctx, runID); err == nil && uriWithin(source, r.ArtifactUri) {
				return source, nil
			}
		}
		return "", unnamed("run_id")
	}
	return source, nil // a store that clients reach by themselves
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
	if err := checkLength("run_id, model_id or run_link", in.RunID+in.ModelID+in.RunLink, maxModelName); err != nil {
		return nil, err
	}
	var v store.ModelVersion
	err = s.tx(ctx, func(q *store.Queries) error {
		at, err := s.downloadAddress(ctx, q, in.Source, in.RunID, in.ModelID)
		if err != nil {
			return err
		}
		if in.RunID == "" && in.ModelID != "" { // as the real stores do: log_model of MLflow 3 names the model alone
			m, err := q.LoggedModel(ctx, in.ModelID)
			if err != nil {
				return noLoggedModel(err, in.ModelID)
			}
			in.RunID = m.SourceRunID
		}
		now := s.now()
		n, err := q.NextVersion(ctx, store.NextVersionParams{Name: in.Name, Updated: now})
		if err != nil {
			return noModel(err, in.Name)
		}
		v, err = q.CreateModelVersion(ctx, store.CreateModelVersionParams{Name: in.Name, Version: n, Now: now, Description: in.Description,
			Source: in.Source, DownloadUri: at, RunID: in.RunID, RunLink: in.RunLink, ModelID: in.ModelID, Tags: tags})
		if err != nil || in.ModelID == "" {
			return err
		}
		return s.recordRegistration(ctx, q, in.ModelID, registered{in.Name, n})
	})
	if err != nil {
		return nil, err
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

// recordRegistration notes on a logged model that a version was made of it.
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
	n, err := s.changeVersion(ctx, in.versionRef, func(q *store.Queries, v store.ModelVersion) error {
		tags, err := mergeTags(v.Tags, []pair{in.pair}, registryTag)
		if err != nil {
			return err
		}
		return q.SetModelVersionTags(ctx, store.SetModelVersionTagsParams{Name: v.Name, Version: v.Version, Tags: tags, Updated: s.now()})
	})
	if err == nil {
		s.notify(ctx, versionTagSet, map[string]any{"name": in.Name, "version": formatInt(n), "key": in.Key, "value": in.Value})
	}
	return nil, err
}

func (s *Server) deleteVersionTag(ctx context.Context, in struct {
	versionRef
	Key string `json:"key"`
}) (any, error) {
	n, err := s.changeVersion(ctx, in.versionRef, func(q *store.Queries, v store.ModelVersion) error {
		delete(v.Tags, in.Key)
		return q.SetModelVersionTags(ctx, store.SetModelVersionTagsParams{Name: v.Name, Version: v.Version, Tags: orEmptyTags(v.Tags), Updated: s.now()})
	})
	if err == nil {
		s.notify(ctx, versionTagDeleted, map[string]any{"name": in.Name, "version": formatInt(n), "key": in.Key})
	}
	return nil, err
}
