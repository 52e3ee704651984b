package trackerd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

// origin is the source of a version's files, and the run or model that they belong to.
type origin struct {
	source   string // as the version shows it
	download string // where the files are
	runID    string
	modelID  string
}

// refuseSource returns the error of a source that is not accepted.
func refuseSource(source, format string, a ...any) error {
	return invalidParameter("Invalid model version source: '%s'. %s", clipValue(source), fmt.Sprintf(format, a...))
}

func unnamedSource(source, param string) error {
	return refuseSource(source, "The %s request parameter must identify the resource that contains the source.", param)
}

// checkArtifactURI refuses addresses of local files and such that climb.
func checkArtifactURI(what, uri string) error {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" || u.Scheme == "file" || u.Scheme == "local" {
		return invalidParameter("Invalid %s: '%s'. Local paths are not served; use mlflow-artifacts:/<path>.", what, clipValue(uri))
	}
	if err := checkLength(what, uri, maxModelName); err != nil {
		return err
	}
	p := u.Path + u.Opaque
	for q := ""; p != q; {
		q = p
		if slices.Contains(strings.Split(strings.ReplaceAll(p, `\`, "/"), "/"), "..") || strings.ContainsRune(p, 0) {
			return invalidParameter("Invalid %s: '%s'. An absolute path must be provided without relative path references present.", what, clipValue(uri))
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

// resolveSource completes an origin. As in the real registry, files of a run or logged model can only be registered
// together with its id, those of another version together with that version: this shows their owner.
func resolveSource(ctx context.Context, q *store.Queries, o origin) (origin, error) {
	if err := checkArtifactURI("model version source", o.source); err != nil {
		return o, err
	}
	scheme, rest, _ := strings.Cut(o.source, ":")
	var err error
	switch scheme {
	case "models":
		if strings.HasPrefix(rest, "//") {
			return o, refuseSource(o.source, "Registered model sources must use the active model registry.")
		}
		rest = strings.TrimLeft(rest, "/")
		if strings.HasPrefix(rest, "m-") && !strings.ContainsAny(rest, "/@") {
			return resolveLoggedModel(ctx, q, o, rest)
		}
		return resolveVersion(ctx, q, o, rest)
	case "runs":
		if id, _, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/"); id == "" || id != o.runID {
			return o, unnamedSource(o.source, "run_id")
		}
		if _, err := q.Run(ctx, o.runID); err != nil {
			return o, noRun(err, o.runID)
		}
	case "mlflow-artifacts":
		err = checkOwner(ctx, q, o)
	}
	if err != nil {
		return o, err
	}
	o.download = o.source                 // of other schemes: a store that clients reach by themselves
	if o.runID == "" && o.modelID != "" { // log_model of MLflow 3 names the model alone
		m, err := q.LoggedModel(ctx, o.modelID)
		o.runID = m.SourceRunID
		return o, noLoggedModel(err, o.modelID)
	}
	return o, nil
}

func resolveLoggedModel(ctx context.Context, q *store.Queries, o origin, id string) (origin, error) {
	if o.modelID != id {
		return o, unnamedSource(o.source, "model_id")
	}
	m, err := q.LoggedModel(ctx, id)
	if err != nil {
		return o, noLoggedModel(err, id)
	}
	o.download = m.ArtifactUri
	if o.runID == "" {
		o.runID = m.SourceRunID
	}
	return o, nil
}

// checkOwner makes sure that a run or logged model that is named holds the source.
func checkOwner(ctx context.Context, q *store.Queries, o origin) error {
	u, err := url.Parse(o.source)
	if err != nil || path.Clean(u.Path) != strings.TrimRight(u.Path, "/") {
		return refuseSource(o.source, "Its path is not a plain one.")
	}
	if o.modelID != "" {
		if m, err := q.LoggedModel(ctx, o.modelID); err == nil && uriWithin(o.source, m.ArtifactUri) {
			return nil
		}
	}
	if o.runID != "" {
		if r, err := q.Run(ctx, o.runID); err == nil && uriWithin(o.source, r.ArtifactUri) {
			return nil
		}
	}
	return unnamedSource(o.source, "run_id")
}

// resolveVersion resolves name/version, name/latest, name/stage and name@alias to the files of that version; the new
// version gets its run and logged model too. The source then names the version by its number, since an alias may move
// later.
func resolveVersion(ctx context.Context, q *store.Queries, o origin, ref string) (origin, error) {
	name, suffix, byNumber := strings.Cut(ref, "/")
	alias := ""
	if at := strings.LastIndex(name, "@"); !byNumber && at > 0 {
		name, alias = name[:at], name[at+1:]
	}
	if name == "" || alias == "" && (suffix == "" || strings.Contains(suffix, "/")) {
		return o, refuseSource(o.source, "It must be models:/<name>/<version>, models:/<name>/latest, models:/<name>@<alias> or models:/m-<id>.")
	}
	m, err := q.RegisteredModel(ctx, name)
	if err != nil {
		return o, noModel(err, name)
	}
	if isPrompt(m.Tags) {
		return o, refuseSource(o.source, "Prompt versions cannot be used as model version sources.")
	}
	var v store.ModelVersion
	if alias == "" {
		v, err = versionOrNewest(ctx, q, name, suffix)
	} else if v, err = q.VersionByAlias(ctx, store.VersionByAliasParams{Name: name, Alias: alias}); errors.Is(err, pgx.ErrNoRows) {
		err = invalidParameter("Registered model alias %s not found.", clipValue(alias))
	}
	if err != nil {
		return o, err
	}
	if o.runID != "" && o.runID != v.RunID || o.modelID != "" && o.modelID != v.ModelID {
		return o, refuseSource(o.source, "The run_id and model_id request parameters must match the referenced model version.")
	}
	return origin{"models:/" + v.Name + "/" + formatInt(v.Version), v.DownloadUri, v.RunID, v.ModelID}, nil
}

// versionOrNewest finds a version by its number, or the newest of a stage or of all.
func versionOrNewest(ctx context.Context, q *store.Queries, name, suffix string) (v store.ModelVersion, err error) {
	if n, err := strconv.ParseInt(suffix, 10, 32); err == nil {
		v, err = q.ModelVersion(ctx, store.ModelVersionParams{Name: name, Version: int32(n)})
		return v, noVersion(err, versionRef{modelRef{name}, suffix})
	}
	newest, err := q.LatestVersions(ctx, []string{name})
	for _, n := range newest {
		if (strings.EqualFold(suffix, "latest") || strings.EqualFold(suffix, n.Stage)) && n.Version > v.Version {
			v = n
		}
	}
	if err == nil && v.Version == 0 {
		err = notFound("No version of model '%s' is in stage '%s'.", clipValue(name), clipValue(suffix))
	}
	return v, err
}
