package tracker

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// RegisteredModel is a name of the registry with its versions' aliases.
type RegisteredModel struct {
	Name        string
	Description string
	Created     time.Time
	Updated     time.Time
	Tags        map[string]string
	Aliases     map[string]string // alias → version
	Latest      []ModelVersion    // newest version, one per legacy stage
}

type modelWire struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Created     milli         `json:"creation_timestamp"`
	Updated     milli         `json:"last_updated_timestamp"`
	Latest      []versionWire `json:"latest_versions"`
	Tags        []pair        `json:"tags"`
	Aliases     []struct {
		Alias   string `json:"alias"`
		Version string `json:"version"`
	} `json:"aliases"`
}

func (w modelWire) model() RegisteredModel {
	m := RegisteredModel{w.Name, w.Description, w.Created.Time, w.Updated.Time, fromPairs(w.Tags),
		make(map[string]string, len(w.Aliases)), make([]ModelVersion, len(w.Latest))}
	for _, a := range w.Aliases {
		m.Aliases[a.Alias] = a.Version
	}
	for i, v := range w.Latest {
		m.Latest[i] = v.version()
	}
	return m
}

// ModelVersion is one version of a registered model.
type ModelVersion struct {
	Name        string
	Version     string // a whole number from 1
	Source      string // where its files are: mlflow-artifacts:/…, runs:/…, models:/m-… or models:/<name>/<version>
	RunID       string
	ModelID     string // the logged model it was made from, if any
	Status      string // READY once usable
	Description string
	Created     time.Time
	Updated     time.Time
	Tags        map[string]string
	Aliases     []string // empty in searches of some releases; [Client.GetRegisteredModel] has them all
}

type versionWire struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Source      string   `json:"source"`
	RunID       string   `json:"run_id"`
	ModelID     string   `json:"model_id"`
	Status      string   `json:"status"`
	Description string   `json:"description"`
	Created     milli    `json:"creation_timestamp"`
	Updated     milli    `json:"last_updated_timestamp"`
	Tags        []pair   `json:"tags"`
	Aliases     []string `json:"aliases"`
}

func (w versionWire) version() ModelVersion {
	return ModelVersion{w.Name, w.Version, w.Source, w.RunID, w.ModelID, w.Status, w.Description,
		w.Created.Time, w.Updated.Time, fromPairs(w.Tags), w.Aliases}
}

// Quote makes a value of the filter grammar. The grammar has no escape: values
// with both kinds of quotes cannot be written, and Quote drops their single ones.
func Quote(s string) string {
	if !strings.Contains(s, "'") {
		return "'" + s + "'"
	}
	if !strings.Contains(s, `"`) {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", "") + "'"
}

// CreateRegisteredModel takes a name in the registry; [ErrExists] if it is taken.
func (c *Client) CreateRegisteredModel(ctx context.Context, name string, tags map[string]string) (RegisteredModel, error) {
	in := struct {
		Name string `json:"name"`
		Tags []pair `json:"tags,omitempty"`
	}{name, toPairs(tags)}
	var out struct {
		Model modelWire `json:"registered_model"`
	}
	err := c.post(ctx, "registered-models/create", in, &out)
	return out.Model.model(), err
}

// EnsureRegisteredModel returns the model of that name, made now, with these
// tags, if there is none.
func (c *Client) EnsureRegisteredModel(ctx context.Context, name string, tags map[string]string) (RegisteredModel, error) {
	m, err := c.CreateRegisteredModel(ctx, name, tags)
	if errors.Is(err, ErrExists) {
		return c.GetRegisteredModel(ctx, name)
	}
	return m, err
}

// GetRegisteredModel reads a model; [ErrNotFound] if there is none.
func (c *Client) GetRegisteredModel(ctx context.Context, name string) (RegisteredModel, error) {
	var out struct {
		Model modelWire `json:"registered_model"`
	}
	err := c.get(ctx, "registered-models/get", url.Values{"name": {name}}, &out)
	return out.Model.model(), err
}

// SearchRegisteredModels yields the models that match filter, by name; an empty
// filter matches all.
func (c *Client) SearchRegisteredModels(ctx context.Context, filter string) iter.Seq2[RegisteredModel, error] {
	return iteratePages("", func(token string) ([]RegisteredModel, string, error) {
		var out struct {
			Models []modelWire `json:"registered_models"`
			Next   string      `json:"next_page_token"`
		}
		if err := c.get(ctx, "registered-models/search", searchQuery(filter, "name ASC", token), &out); err != nil {
			return nil, "", err
		}
		ms := make([]RegisteredModel, len(out.Models))
		for i, m := range out.Models {
			ms[i] = m.model()
		}
		return ms, out.Next, nil
	})
}

func searchQuery(filter, order, token string) url.Values {
	q := url.Values{"max_results": {"200"}, "order_by": {order}}
	if filter != "" {
		q.Set("filter", filter)
	}
	if token != "" {
		q.Set("page_token", token)
	}
	return q
}

// CreateModelVersion registers the files at source as the next version of name,
// which must exist. runID may be empty.
func (c *Client) CreateModelVersion(ctx context.Context, name, source, runID string, tags map[string]string) (ModelVersion, error) {
	in := struct {
		Name   string `json:"name"`
		Source string `json:"source"`
		RunID  string `json:"run_id,omitempty"`
		Tags   []pair `json:"tags,omitempty"`
	}{name, source, runID, toPairs(tags)}
	var out versionAnswer
	err := c.post(ctx, "model-versions/create", in, &out)
	return out.Version.version(), err
}

type versionAnswer struct {
	Version versionWire `json:"model_version"`
}

// GetModelVersion reads one version; [ErrNotFound] if there is none.
func (c *Client) GetModelVersion(ctx context.Context, name, version string) (ModelVersion, error) {
	var out versionAnswer
	err := c.get(ctx, "model-versions/get", url.Values{"name": {name}, "version": {version}}, &out)
	return out.Version.version(), err
}

// SearchModelVersions yields the versions that match filter, such as
// "name = 'runtime'", newest first within a name.
func (c *Client) SearchModelVersions(ctx context.Context, filter string) iter.Seq2[ModelVersion, error] {
	return iteratePages("", func(token string) ([]ModelVersion, string, error) {
		q := searchQuery(filter, "name ASC", token)
		q.Add("order_by", "version_number DESC")
		var out struct {
			Versions []versionWire `json:"model_versions"`
			Next     string        `json:"next_page_token"`
		}
		if err := c.get(ctx, "model-versions/search", q, &out); err != nil {
			return nil, "", err
		}
		vs := make([]ModelVersion, len(out.Versions))
		for i, v := range out.Versions {
			vs[i] = v.version()
		}
		return vs, out.Next, nil
	})
}

// SetModelVersionTag sets a tag of a version.
func (c *Client) SetModelVersionTag(ctx context.Context, name, version, key, value string) error {
	in := map[string]string{"name": name, "version": version, "key": key, "value": value}
	return c.post(ctx, "model-versions/set-tag", in, nil)
}

// SetAlias makes alias name this version, in one step for all readers.
func (c *Client) SetAlias(ctx context.Context, name, alias, version string) error {
	in := map[string]string{"name": name, "alias": alias, "version": version}
	return c.post(ctx, "registered-models/alias", in, nil)
}

// DeleteAlias removes an alias; a missing one is no error.
func (c *Client) DeleteAlias(ctx context.Context, name, alias string) error {
	return c.write(ctx, http.MethodDelete, "registered-models/alias", map[string]string{"name": name, "alias": alias}, nil)
}

// GetByAlias reads the version that alias names; [ErrNotFound] if model or alias
// do not exist.
func (c *Client) GetByAlias(ctx context.Context, name, alias string) (ModelVersion, error) {
	var out versionAnswer
	err := c.get(ctx, "registered-models/alias", url.Values{"name": {name}, "alias": {alias}}, &out)
	var e *Error
	if errors.As(err, &e) && e.Code == CodeInvalidParameter {
		// Real servers report an absent alias as an invalid parameter; the only
		// other cause of that code is a malformed name, which names nothing
		// either.
		return ModelVersion{}, &Error{Status: http.StatusNotFound, Code: CodeNotFound, Message: e.Message, Op: e.Op}
	}
	return out.Version.version(), err
}

// DownloadURI is the location of a version's files, with logged models resolved.
func (c *Client) DownloadURI(ctx context.Context, name, version string) (string, error) {
	var out struct {
		URI string `json:"artifact_uri"`
	}
	err := c.get(ctx, "model-versions/get-download-uri", url.Values{"name": {name}, "version": {version}}, &out)
	return out.URI, err
}
