package trackerd

import (
	"context"
	"errors"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

type aliasOut struct {
	Alias   string `json:"alias"`
	Version string `json:"version"`
}

type registeredModel struct {
	Name        string         `json:"name"`
	Created     int64          `json:"creation_timestamp"`
	Updated     int64          `json:"last_updated_timestamp"`
	Description *string        `json:"description,omitempty"`
	Latest      []modelVersion `json:"latest_versions,omitempty"`
	Tags        []pair         `json:"tags,omitempty"`
	Aliases     []aliasOut     `json:"aliases,omitempty"`
}

type registeredModelAnswer struct {
	Model registeredModel `json:"registered_model"`
}

// toModels adds the newest versions and the aliases to rows, in two reads for all.
func (s *Server) toModels(ctx context.Context, q *store.Queries, found []store.RegisteredModel) ([]registeredModel, error) {
	if len(found) == 0 {
		return nil, nil
	}
	out := make([]registeredModel, len(found))
	names := make([]string, len(found))
	at := make(map[string]*registeredModel, len(found))
	for i, m := range found {
		out[i] = registeredModel{Name: m.Name, Created: m.Created, Updated: m.Updated, Description: m.Description, Tags: toPairs(m.Tags)}
		names[i], at[m.Name] = m.Name, &out[i]
	}
	aliases, err := q.Aliases(ctx, names)
	if err != nil {
		return nil, err
	}
	byVersion := map[versionKey][]string{}
	for _, a := range aliases {
		m := at[a.Name]
		m.Aliases = append(m.Aliases, aliasOut{a.Alias, formatInt(a.Version)})
		k := versionKey{a.Name, a.Version}
		byVersion[k] = append(byVersion[k], a.Alias)
	}
	latest, err := q.LatestVersions(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, v := range latest {
		m := at[v.Name]
		m.Latest = append(m.Latest, toVersion(v, byVersion[versionKey{v.Name, v.Version}]))
	}
	return out, nil
}

func (s *Server) modelAnswer(ctx context.Context, q *store.Queries, name string) (registeredModelAnswer, error) {
	m, err := q.RegisteredModel(ctx, name)
	if err != nil {
		return registeredModelAnswer{}, noModel(err, name)
	}
	models, err := s.toModels(ctx, q, []store.RegisteredModel{m})
	if err != nil {
		return registeredModelAnswer{}, err
	}
	return registeredModelAnswer{models[0]}, nil
}

func noModel(err error, name string) error {
	return orNotFound(err, "Registered Model with name=%s not found", clipValue(name))
}

func (s *Server) createRegisteredModel(ctx context.Context, in struct {
	Name        string  `json:"name"`
	Tags        []pair  `json:"tags"`
	Description *string `json:"description"`
}) (any, error) {
	if err := checkModelName(in.Name); err != nil {
		return nil, err
	}
	tags, err := mergeTags(nil, in.Tags, registryTag)
	if err != nil {
		return nil, err
	}
	if err := checkDescription(in.Description); err != nil {
		return nil, err
	}
	now := s.now()
	err = s.q.CreateRegisteredModel(ctx, store.CreateRegisteredModelParams{Name: in.Name, Description: in.Description, Created: now, Tags: tags})
	if postgres.IsUnique(err, "registered_model_pkey") {
		return nil, s.nameTaken(ctx, in.Name, isPrompt(tags))
	}
	if err != nil {
		return nil, err
	}
	if isPrompt(tags) {
		return registeredModelAnswer{registeredModel{Name: in.Name, Created: now, Updated: now, Description: in.Description, Tags: toPairs(tags)}}, nil
	}
	s.notify(ctx, registeredModelCreated, map[string]any{"name": in.Name, "tags": tags, "description": in.Description})
	return registeredModelAnswer{registeredModel{Name: in.Name, Created: now, Updated: now, Description: in.Description, Tags: toPairs(tags)}}, nil
}

// nameTaken returns the error for a name in use.
func (s *Server) nameTaken(ctx context.Context, name string, prompt bool) error {
	m, err := s.q.RegisteredModel(ctx, name)
	if err == nil && isPrompt(m.Tags) != prompt {
		return alreadyExists("Tried to create a %s with name '%s', but the name is already taken by a %s. MLflow does not allow creating a model and a prompt with the same name.",
			kindOf(prompt), clipValue(name), kindOf(!prompt))
	}
	what := "Registered Model"
	if prompt {
		what = "Prompt"
	}
	return alreadyExists("%s (name=%s) already exists.", what, clipValue(name))
}

func checkDescription(d *string) error {
	if d == nil {
		return nil
	}
	return checkLength("description", *d, maxDescription)
}

type modelRef struct {
	Name string `json:"name"`
}

func (s *Server) getRegisteredModel(ctx context.Context, in modelRef) (any, error) {
	if in.Name == "" {
		return nil, missingParameter("name")
	}
	return s.modelAnswer(ctx, s.q, in.Name)
}

func (s *Server) searchRegisteredModels(ctx context.Context, in struct {
	Filter  string   `json:"filter"`
	Max     *integer `json:"max_results"`
	OrderBy []string `json:"order_by"`
	Token   string   `json:"page_token"`
}) (any, error) {
	p, err := newPage(in.Max, 100, 1000, maxRows, in.Token)
	if err != nil {
		return nil, err
	}
	search, err := newSearch(store.RegisteredModelGrammar, in.Filter, in.OrderBy, p)
	if err != nil {
		return nil, err
	}
	found, more, err := s.q.SearchRegisteredModels(ctx, search)
	if err != nil {
		return nil, err
	}
	models, err := s.toModels(ctx, s.q, found)
	if err != nil {
		return nil, err
	}
	return struct {
		Models []registeredModel `json:"registered_models,omitempty"`
		Next   string            `json:"next_page_token,omitempty"`
	}{models, p.next(len(found), more)}, nil
}

// changeModel runs fn under the lock of a registered model.
func (s *Server) changeModel(ctx context.Context, name string, fn func(*store.Queries, store.RegisteredModel) error) error {
	if name == "" {
		return missingParameter("name")
	}
	return s.tx(ctx, func(q *store.Queries) error {
		m, err := q.LockRegisteredModel(ctx, name)
		if err != nil {
			return noModel(err, name)
		}
		return fn(q, m)
	})
}

func (s *Server) updateRegisteredModel(ctx context.Context, in struct {
	modelRef
	Description *string `json:"description"`
}) (any, error) {
	if err := checkDescription(in.Description); err != nil {
		return nil, err
	}
	var out registeredModelAnswer
	err := s.changeModel(ctx, in.Name, func(q *store.Queries, m store.RegisteredModel) (err error) {
		err = q.DescribeRegisteredModel(ctx, store.DescribeRegisteredModelParams{Name: m.Name, Description: in.Description, Updated: s.now()})
		if err != nil {
			return err
		}
		out, err = s.modelAnswer(ctx, q, m.Name)
		return err
	})
	return out, err
}

func (s *Server) renameRegisteredModel(ctx context.Context, in struct {
	modelRef
	New string `json:"new_name"`
}) (any, error) {
	if in.New == "" {
		return nil, missingParameter("new_name")
	}
	if err := checkModelName(in.New); err != nil {
		return nil, err
	}
	var out registeredModelAnswer
	err := s.changeModel(ctx, in.Name, func(q *store.Queries, m store.RegisteredModel) error {
		now := s.now()
		err := q.RenameRegisteredModel(ctx, store.RenameRegisteredModelParams{Name: m.Name, NewName: in.New, Updated: now})
		if postgres.IsUnique(err, "registered_model_pkey") {
			return alreadyExists("Registered Model (name=%s) already exists.", in.New)
		}
		if err != nil {
			return err
		}
		if err := q.TouchVersions(ctx, store.TouchVersionsParams{Name: in.New, Updated: now}); err != nil {
			return err
		}
		out, err = s.modelAnswer(ctx, q, in.New)
		return err
	})
	return out, err
}

func (s *Server) deleteRegisteredModel(ctx context.Context, in modelRef) (any, error) {
	if in.Name == "" {
		return nil, missingParameter("name")
	}
	n, err := s.q.DeleteRegisteredModel(ctx, in.Name)
	if err == nil && n == 0 {
		err = notFound("Registered Model with name=%s not found", clipValue(in.Name))
	}
	return nil, err
}

func (s *Server) latestVersions(ctx context.Context, in struct {
	modelRef
	Stages []string `json:"stages"`
}) (any, error) {
	wanted := map[string]bool{}
	for _, st := range in.Stages {
		st, err := canonicalStage(st)
		if err != nil {
			return nil, err
		}
		wanted[st] = true
	}
	m, err := s.getRegisteredModel(ctx, in.modelRef)
	if err != nil {
		return nil, err
	}
	var out struct {
		Versions []modelVersion `json:"model_versions,omitempty"`
	}
	for _, v := range m.(registeredModelAnswer).Model.Latest {
		if len(wanted) == 0 || wanted[v.Stage] {
			out.Versions = append(out.Versions, v)
		}
	}
	return out, nil
}

func (s *Server) setModelTag(ctx context.Context, in struct {
	modelRef
	pair
}) (any, error) {
	return nil, s.changeModel(ctx, in.Name, func(q *store.Queries, m store.RegisteredModel) error {
		tags, err := mergeTags(maps.Clone(m.Tags), []pair{in.pair}, registryTag)
		if err != nil {
			return err
		}
		if err := keepsKind(m.Tags, tags); err != nil {
			return err
		}
		return q.SetRegisteredModelTags(ctx, store.SetRegisteredModelTagsParams{Name: m.Name, Tags: tags, Updated: s.now()})
	})
}

// deleteModelTag is no error for a tag that is not there, as in the real registry.
func (s *Server) deleteModelTag(ctx context.Context, in struct {
	modelRef
	Key string `json:"key"`
}) (any, error) {
	if err := requireValues("key", in.Key); err != nil {
		return nil, err
	}
	return nil, s.changeModel(ctx, in.Name, func(q *store.Queries, m store.RegisteredModel) error {
		tags, err := withoutTag(m.Tags, in.Key)
		if err != nil {
			return err
		}
		return q.SetRegisteredModelTags(ctx, store.SetRegisteredModelTagsParams{Name: m.Name, Tags: tags, Updated: s.now()})
	})
}

type aliasRef struct {
	modelRef
	Alias string `json:"alias"`
}

func (s *Server) setAlias(ctx context.Context, in struct {
	aliasRef
	Version string `json:"version"`
}) (any, error) {
	if err := checkAlias(in.Alias); err != nil {
		return nil, err
	}
	prompt := false
	n, err := s.changeVersion(ctx, versionRef{in.modelRef, in.Version}, func(q *store.Queries, v store.ModelVersion) error {
		prompt = isPrompt(v.Tags)
		if err := q.SetAlias(ctx, store.SetAliasParams{Name: v.Name, Alias: in.Alias, Version: v.Version}); err != nil {
			return err
		}
		return q.TouchRegisteredModel(ctx, store.TouchRegisteredModelParams{Name: v.Name, Updated: s.now()})
	})
	if err == nil && !prompt {
		s.notify(ctx, aliasCreated, map[string]any{"name": in.Name, "alias": in.Alias, "version": formatInt(n)})
	}
	return nil, err
}

func (s *Server) deleteAlias(ctx context.Context, in aliasRef) (any, error) {
	if in.Alias == "" {
		return nil, missingParameter("alias")
	}
	var gone int64
	prompt := false
	err := s.changeModel(ctx, in.Name, func(q *store.Queries, m store.RegisteredModel) (err error) {
		prompt = isPrompt(m.Tags)
		if gone, err = q.DeleteAlias(ctx, store.DeleteAliasParams{Name: m.Name, Alias: in.Alias}); err != nil {
			return err
		}
		return q.TouchRegisteredModel(ctx, store.TouchRegisteredModelParams{Name: m.Name, Updated: s.now()})
	})
	if err == nil && gone > 0 && !prompt {
		s.notify(ctx, aliasDeleted, map[string]any{"name": in.Name, "alias": in.Alias})
	}
	return nil, err
}

func (s *Server) getByAlias(ctx context.Context, in aliasRef) (any, error) {
	if err := requireValues("name", in.Name, "alias", in.Alias); err != nil {
		return nil, err
	}
	v, err := s.q.VersionByAlias(ctx, store.VersionByAliasParams{Name: in.Name, Alias: in.Alias})
	if err == nil {
		return s.versionAnswer(ctx, s.q, v)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	if _, err := s.q.RegisteredModel(ctx, in.Name); err != nil {
		return nil, noModel(err, in.Name)
	}
	return nil, invalidParameter("Registered model alias %s not found.", clipValue(in.Alias)) // the code that clients expect here
}
