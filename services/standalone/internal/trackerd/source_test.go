package trackerd_test

import (
	"strings"
	"testing"
)

// TestCopyOfAVersion registers a version under another name: it has the files, the run and the logged model of the one
// that the source names, and the source names it by its number.
func TestCopyOfAVersion(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	run, experiment := b.run(t)
	for _, name := range []string{"a", "b"} {
		b.want(t, 200, "POST", api+"registered-models/create", obj{"name": name})
	}
	logged := b.want(t, 200, "POST", api+"logged-models", obj{"experiment_id": experiment, "source_run_id": run})["model"].(obj)["info"].(obj)
	id := logged["model_id"].(string)
	create := func(status int, body obj) obj {
		t.Helper()
		v, _ := b.want(t, status, "POST", api+"model-versions/create", body)["model_version"].(obj)
		return v
	}
	create(200, obj{"name": "a", "source": "models:/" + id, "model_id": id})
	create(200, obj{"name": "a", "source": "runs:/" + run + "/other", "run_id": run})
	b.want(t, 200, "POST", api+"registered-models/alias", obj{"name": "a", "alias": "Champion", "version": "1"})
	for _, c := range []struct {
		source, from, model, files string
		extra                      obj
	}{
		{"models:/a/1", "models:/a/1", id, logged["artifact_uri"].(string), nil},
		{"models:/a/1", "models:/a/1", id, logged["artifact_uri"].(string), obj{"run_id": run, "model_id": id}},
		{"models:/a@Champion", "models:/a/1", id, logged["artifact_uri"].(string), nil},
		{"models:/a/latest", "models:/a/2", "", "runs:/" + run + "/other", nil},
		{"models:/a/none", "models:/a/2", "", "runs:/" + run + "/other", nil},
		{"models:/b/1", "models:/b/1", id, logged["artifact_uri"].(string), nil}, // a copy of a copy
	} {
		body := obj{"name": "b", "source": c.source}
		for k, v := range c.extra {
			body[k] = v
		}
		v := create(200, body)
		model, _ := v["model_id"].(string)
		at := b.want(t, 200, "GET", api+"model-versions/get-download-uri?name=b&version="+v["version"].(string), nil)["artifact_uri"]
		if v["source"] != c.from || v["run_id"] != run || model != c.model || at != c.files {
			t.Errorf("copy of %s: source %v, run %v, model %v, files %v; want %s, %s, %s, %s", c.source, v["source"], v["run_id"], model, at, c.from, run, c.model, c.files)
		}
	}
	for _, c := range []struct {
		status int
		body   obj
	}{
		{404, obj{"source": "models:/a/9"}},
		{404, obj{"source": "models:/none/1"}},
		{404, obj{"source": "models:/a/Production"}},
		{400, obj{"source": "models:/a@none"}},
		{400, obj{"source": "models:/a"}},
		{400, obj{"source": "models:/a/1/model"}},
		{400, obj{"source": "models://elsewhere/a/1"}},
		{400, obj{"source": "models:/a/1", "run_id": "another"}},
		{400, obj{"source": "models:/a/1", "model_id": "m-another"}},
		{400, obj{"source": "models:/" + id}}, // a logged model is named, too
	} {
		c.body["name"] = "b"
		create(c.status, c.body)
	}
	b.want(t, 200, "DELETE", api+"logged-models/"+id, nil)
	if v := create(200, obj{"name": "b", "source": "models:/a/1"}); v["model_id"] != id {
		t.Errorf("a copy after the logged model was deleted: %v, want one of %s", v, id)
	}
}

// TestDatasetsFilterByThemselves searches for models measured on a dataset, with no condition on the metric.
func TestDatasetsFilterByThemselves(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	run, experiment := b.run(t)
	var ids []string
	for range 2 {
		ids = append(ids, b.want(t, 200, "POST", api+"logged-models", obj{"experiment_id": experiment})["model"].(obj)["info"].(obj)["model_id"].(string))
	}
	b.want(t, 200, "POST", api+"runs/log-metric", obj{"run_id": run, "key": "k", "value": 1, "timestamp": 1, "model_id": ids[0], "dataset_name": "jobs", "dataset_digest": "d1"})
	for _, c := range []struct {
		datasets []obj
		want     int
	}{
		{nil, 2},
		{[]obj{{"dataset_name": "no-such"}}, 0},
		{[]obj{{"dataset_name": "jobs"}}, 1},
		{[]obj{{"dataset_name": "jobs", "dataset_digest": "d1"}}, 1},
		{[]obj{{"dataset_name": "jobs", "dataset_digest": "d2"}}, 0},
		{[]obj{{"dataset_name": "no-such"}, {"dataset_name": "jobs"}}, 1},
	} {
		found := b.want(t, 200, "POST", api+"logged-models/search", obj{"experiment_ids": []string{experiment}, "datasets": c.datasets})
		if models, _ := found["models"].([]any); len(models) != c.want {
			t.Errorf("datasets %v: %d models, want %d", c.datasets, len(models), c.want)
		}
	}
	b.want(t, 400, "POST", api+"logged-models/search", obj{"experiment_ids": []string{experiment}, "datasets": []obj{{"dataset_digest": "d1"}}})
}

// TestPromptsAreNoModels keeps prompts next to models: searches distinguish them, and neither can become the other.
func TestPromptsAreNoModels(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	run, _ := b.run(t)
	prompt := []obj{{"key": "mlflow.prompt.is_prompt", "value": "true"}, {"key": "mlflow.prompt.text", "value": "Say {{what}}."}}
	b.want(t, 200, "POST", api+"registered-models/create", obj{"name": "p", "tags": prompt[:1]})
	b.want(t, 200, "POST", api+"registered-models/create", obj{"name": "m"})
	b.want(t, 200, "POST", api+"model-versions/create", obj{"name": "p", "source": "dummy-source", "tags": prompt})
	b.want(t, 200, "POST", api+"model-versions/create", obj{"name": "m", "source": "runs:/" + run + "/m", "run_id": run})
	for filter, want := range map[string]string{
		"": "m", "tags.`mlflow.prompt.is_prompt` = 'true'": "p", "tags.`mlflow.prompt.is_prompt` != 'true'": "m", "name LIKE '%25'": "m",
		"name = 'p'": "", "name = 'p' AND tags.`mlflow.prompt.is_prompt` = 'true'": "p",
	} {
		for _, of := range []struct{ kind, list string }{{"registered-models", "registered_models"}, {"model-versions", "model_versions"}} {
			found := b.want(t, 200, "GET", api+of.kind+"/search?filter="+strings.ReplaceAll(filter, " ", "+"), nil)
			var names []string
			rows, _ := found[of.list].([]any)
			for _, r := range rows {
				names = append(names, r.(obj)["name"].(string))
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s %q: %q, want %q", of.kind, filter, got, want)
			}
		}
	}
	const is = "mlflow.prompt.is_prompt"
	for _, c := range []struct {
		status             int
		method, path, want string
		body               obj
	}{
		{400, "POST", "registered-models/create", "already taken by a registered model", obj{"name": "m", "tags": prompt[:1]}},
		{400, "POST", "registered-models/create", "already taken by a prompt", obj{"name": "p"}},
		{400, "POST", "registered-models/create", "Prompt (name=p) already exists", obj{"name": "p", "tags": prompt[:1]}},
		{400, "POST", "model-versions/create", "Invalid prompt source", obj{"name": "p", "source": "mlflow-artifacts:/0/x", "tags": prompt}},
		{400, "POST", "model-versions/create", "is a prompt", obj{"name": "p", "source": "runs:/" + run + "/m", "run_id": run}},
		{400, "POST", "model-versions/create", "is a registered model", obj{"name": "m", "source": "dummy-source", "tags": prompt}},
		{400, "POST", "model-versions/create", "Prompt versions cannot be", obj{"name": "m", "source": "models:/p/1"}},
		{400, "POST", "registered-models/set-tag", "cannot be changed", obj{"name": "m", "key": is, "value": "true"}},
		{400, "POST", "registered-models/set-tag", "cannot be changed", obj{"name": "p", "key": is, "value": "false"}},
		{400, "POST", "model-versions/set-tag", "cannot be changed", obj{"name": "m", "version": "1", "key": is, "value": "True"}},
		{400, "DELETE", "registered-models/delete-tag", "cannot be changed", obj{"name": "p", "key": is}},
		{400, "DELETE", "model-versions/delete-tag", "cannot be changed", obj{"name": "p", "version": "1", "key": is}},
		{200, "POST", "registered-models/set-tag", "", obj{"name": "p", "key": is, "value": "true"}},
		{200, "POST", "registered-models/alias", "", obj{"name": "p", "alias": "production", "version": "1"}},
	} {
		got := b.want(t, c.status, c.method, api+c.path, c.body)
		if message, _ := got["message"].(string); !strings.Contains(message, c.want) {
			t.Errorf("%s %v: %q, want %q", c.path, c.body, message, c.want)
		}
	}
}
