package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// StepUpActions returns all guarded actions of a proxied request, the most specific first.
func StepUpActions(r *http.Request) []string {
	s, path, err := splitPath(r.URL.EscapedPath())
	if err != nil {
		return nil
	}
	return stepUpActions(r.Method, s, path)
}

func stepUpActions(method string, s upstream.Service, path string) []string {
	if isSafe(method) || s != upstream.Tracker && s != upstream.ControlPlane {
		return nil
	}
	if s == upstream.Tracker && searches[method+" "+path] {
		return nil
	}
	general := "proxy." + string(s)
	if movesAlias(s, path) {
		return []string{"model.promote", general}
	}
	return []string{general}
}

// searches are the tracker's routes that only read although their method is not safe: all of MLflow's that end in
// /search. A request is one of them by its method and its whole path as it came. A path that only looks like one, by its
// end or once decoded, may lead the tracker to a write: an artifact may have any name.
var searches = func() map[string]bool {
	found := map[string]bool{}
	for _, root := range []string{"/api/", "/ajax-api/"} {
		for _, route := range []string{
			"2.0/mlflow/experiments/search", "2.0/mlflow/runs/search", "2.0/mlflow/logged-models/search",
			"3.0/mlflow/traces/search", "3.0/mlflow/datasets/search", "3.0/mlflow/issues/search", "3.0/mlflow/prompt-optimization/jobs/search",
		} {
			found[http.MethodPost+" "+root+route] = true
		}
	}
	return found
}()

// movers are the routes whose writes move an alias or a stage, or decide about that, by service. A segment * matches
// any one, a last ** all that follow. Unlike a search, a path is matched in every form that a service could interpret
// as the route: a guard that asks too often only costs a sign-in.
var movers = map[upstream.Service][][]string{
	upstream.Tracker: {
		{"*", "*", "mlflow", "registered-models", "alias"}, {"*", "*", "preview", "mlflow", "registered-models", "alias"},
		{"*", "*", "mlflow", "model-versions", "transition-stage"}, {"*", "*", "preview", "mlflow", "model-versions", "transition-stage"},
	},
	upstream.ControlPlane: {{"promotions", "**"}, {"aliases", "**"}},
}

// movesAlias reports whether a write to the path moves a model's alias or stage.
func movesAlias(s upstream.Service, path string) bool {
	segments := strings.FieldsFunc(strings.ToLower(decodeOnce(decodeOnce(path))), func(r rune) bool { return r == '/' })
	for i, segment := range segments {
		segments[i], _, _ = strings.Cut(segment, ";") // parameters, to some servers
	}
	return slices.ContainsFunc(movers[s], func(pattern []string) bool { return matchSegments(pattern, segments) })
}

func matchSegments(pattern, segments []string) bool {
	for i, want := range pattern {
		switch {
		case want == "**":
			return true
		case i == len(segments) || want != "*" && want != segments[i]:
			return false
		}
	}
	return len(pattern) == len(segments)
}
