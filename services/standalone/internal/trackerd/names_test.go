package trackerd_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestNamesOfEveryScript gives each kind of name letters and numbers that are not ASCII, which the interface's rule
// takes: it is written with Python's \w.
func TestNamesOfEveryScript(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	run, experiment := b.run(t)
	b.want(t, 200, "POST", api+"registered-models/create", obj{"name": "Größe"})
	b.want(t, 200, "POST", api+"model-versions/create", obj{"name": "Größe", "source": "runs:/" + run + "/m", "run_id": run})
	for _, name := range []string{"精度", "größe/é", "Ⅷ_²", "точность 1"} {
		tag := obj{"key": name, "value": name}
		b.want(t, 200, "POST", api+"runs/log-metric", obj{"run_id": run, "key": name, "value": 1, "timestamp": 1})
		b.want(t, 200, "POST", api+"runs/log-batch", obj{"run_id": run, "params": []obj{tag}, "tags": []obj{tag},
			"metrics": []obj{{"key": name + "2", "value": 1, "timestamp": 1}}})
		b.want(t, 200, "POST", api+"runs/set-tag", obj{"run_id": run, "key": name, "value": "x"})
		b.want(t, 200, "POST", api+"experiments/set-experiment-tag", obj{"experiment_id": experiment, "key": name, "value": "x"})
		b.want(t, 200, "POST", api+"registered-models/set-tag", obj{"name": "Größe", "key": name, "value": "x"})
		b.want(t, 200, "POST", api+"model-versions/set-tag", obj{"name": "Größe", "version": "1", "key": name, "value": "x"})
		b.want(t, 200, "POST", api+"logged-models", obj{"experiment_id": experiment, "tags": []obj{tag}, "params": []obj{tag}})
		b.want(t, 200, "POST", api+"runs/log-inputs", obj{"run_id": run, "datasets": []obj{{"tags": []obj{tag},
			"dataset": obj{"name": name, "digest": "d", "source_type": "local", "source": "s"}}}})
		found := b.want(t, 200, "POST", api+"runs/search", obj{"experiment_ids": []string{experiment}, "filter": "metrics.`" + name + "` = 1 and tags.`" + name + "` = 'x'"})
		if runs, _ := found["runs"].([]any); len(runs) != 1 {
			t.Errorf("search by %s: %d runs, want 1", name, len(runs))
		}
	}
	b.want(t, 200, "POST", api+"registered-models/alias", obj{"name": "Größe", "alias": "Prüfling", "version": "1"})
	for _, name := range []string{"a$", "a\u0301", "😀", "a\tb"} { // a combining mark is no \w either
		b.want(t, 400, "POST", api+"runs/log-metric", obj{"run_id": run, "key": name, "value": 1, "timestamp": 1})
	}
}

// TestRefusalsNameTheParameter checks the messages: the parameter as on the wire, its value, its type in the
// interface's terms, and no detail of this server's code.
func TestRefusalsNameTheParameter(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	run, experiment := b.run(t)
	b.want(t, 200, "POST", api+"registered-models/create", obj{"name": "m"})
	const api3 = api + "runs/log-metric"
	metric := func(extra obj) obj {
		m := obj{"run_id": run, "key": "k", "value": 1, "timestamp": 1, "step": 1}
		for k, v := range extra {
			m[k] = v
		}
		return m
	}
	const hint = " See the API docs for more information about request parameters."
	wrong := func(value, param, kind string) string {
		return fmt.Sprintf("Invalid value %s for parameter '%s' supplied:  Hint: Value was of type '%s'.%s", value, param, kind, hint)
	}
	missing := func(param string) string { return "Missing value for required parameter '" + param + "'." + hint }
	const names = "Names may only contain alphanumerics"
	for _, c := range []struct {
		path string
		body obj
		want string
	}{
		{api3, metric(obj{"run_id": 7}), wrong("7", "run_id", "int")},
		{api3, metric(obj{"key": 7}), wrong("7", "key", "int")},
		{api3, metric(obj{"value": "high"}), wrong(`"high"`, "value", "str")},
		{api3, metric(obj{"value": obj{}}), wrong("{}", "value", "dict")},
		{api3, metric(obj{"timestamp": "now"}), wrong(`"now"`, "timestamp", "str")},
		{api3, metric(obj{"timestamp": true}), wrong("true", "timestamp", "bool")},
		{api3, metric(obj{"step": "first"}), wrong(`"first"`, "step", "str")},
		{api3, metric(obj{"step": []int{1}}), wrong("[1]", "step", "list")},
		{api3, obj{}, missing("run_id")},
		{api3, obj{"run_id": run}, missing("key")},
		{api3, obj{"run_id": run, "key": "k"}, missing("value")},
		{api3, obj{"run_id": run, "key": "k", "value": 1}, missing("timestamp")},
		{api3, metric(obj{"key": "a$"}), `Invalid value "a$" for parameter 'name' supplied: ` + names},
		{api3, metric(obj{"key": "a/../b"}), `Invalid value "a/../b" for parameter 'name' supplied: Names may be treated as files`},
		{api3, metric(obj{"timestamp": -1}), "Invalid value -1 for parameter 'timestamp' supplied: metric 'k' (value=1.0)."},
		{api3, metric(obj{"key": strings.Repeat("k", 251)}), "'Metric name' exceeds the maximum length of 250 characters"},
		{api + "runs/log-parameter", obj{"run_id": run, "key": "a$", "value": "1"}, `Invalid value "a$" for parameter 'key' supplied: ` + names},
		{api + "runs/log-parameter", obj{"run_id": run, "key": "a", "value": 1}, wrong("1", "value", "int")},
		{api + "runs/set-tag", obj{"run_id": run, "key": "a$", "value": "1"}, `Invalid value "a$" for parameter 'key' supplied: ` + names},
		{api + "runs/log-batch", obj{"run_id": run, "metrics": []obj{metric(nil), {"key": "k", "timestamp": 1}}}, missing("metrics[1].value")},
		{api + "runs/log-batch", obj{"run_id": run, "metrics": []obj{metric(obj{"key": "a$"})}}, `Invalid value "a$" for parameter 'metrics[0].name' supplied: ` + names},
		{api + "runs/log-batch", obj{"run_id": run, "metrics": []obj{metric(obj{"value": "high"})}}, wrong(`"high"`, "metrics[0].value", "str")},
		{api + "runs/log-batch", obj{"run_id": run, "params": []obj{{"key": "a$"}}}, `Invalid value "a$" for parameter 'params[0].key' supplied: ` + names},
		{api + "runs/log-batch", obj{"run_id": run, "tags": []obj{{"value": "v"}}}, missing("tags[0].key")},
		{api + "runs/log-batch", obj{"run_id": run, "metrics": "all"}, wrong(`"all"`, "metrics", "str")},
		{api + "runs/create", obj{"experiment_id": 5}, wrong("5", "experiment_id", "int")},
		{api + "runs/create", obj{"experiment_id": experiment, "start_time": 1.5e300}, wrong("1.5e+300", "start_time", "float")},
		{api + "runs/search", obj{"experiment_ids": []int{5}}, wrong("[5]", "experiment_ids", "list")},
		{api + "runs/search", obj{"max_results": "many"}, wrong(`"many"`, "max_results", "str")},
		{api + "runs/log-inputs", obj{"run_id": run, "datasets": []obj{{"dataset": obj{"name": 5}}}}, wrong("5", "datasets[0].dataset.name", "int")},
		{api + "experiments/set-experiment-tag", obj{"experiment_id": experiment, "key": []int{}, "value": ""}, wrong("[]", "key", "list")},
		{api + "runs/delete-tag", obj{"run_id": run}, missing("key")},
		{api + "runs/log-inputs", obj{"run_id": run, "datasets": []obj{{"dataset": obj{"name": "n", "digest": strings.Repeat("d", 37)}}}}, "'digest' exceeds the maximum length of 36 characters"},
		{api + "experiments/set-experiment-tag", obj{"experiment_id": experiment, "key": "k", "value": strings.Repeat("x", 20001)}, "'value' exceeds the maximum length of 20000 characters"},
		{api + "registered-models/create", obj{"name": ".."}, `Invalid value ".." for parameter 'name' supplied: Names may be treated as files`},
		{api + "model-versions/create", obj{"name": "m", "source": "/etc"}, "Invalid model version source: '/etc'."},
		{api + "model-versions/set-tag", obj{"name": "m", "version": 1, "key": "k"}, wrong("1", "version", "int")},
		{api + "model-versions/transition-stage", obj{"name": "m", "version": "1", "archive_existing_versions": "no"}, wrong(`"no"`, "archive_existing_versions", "str")},
	} {
		a := b.do(t, "POST", c.path, c.body)
		if got, _ := a.json(t)["message"].(string); a.status != 400 || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %v:\n got %d %s\nwant 400 %s", c.path, c.body, a.status, got, c.want)
		}
	}
}
