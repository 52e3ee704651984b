package governance_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	full := map[string]any{
		"model": "Llama-3-8b", "engine": "vllm", "hostedModelId": "meta-llama/Llama-3-8B-Instruct", "maxModelLen": 8192,
		"tensorParallel": 2, "dtype": "bfloat16", "enabled": false,
	}
	got := p.Want(200, "PUT", "/llm/endpoints/llama-3-8b", controlplanetest.Trainer, full).Object(t)
	for key, want := range map[string]any{
		"model": "LLAMA-3-8B", "engine": "vllm", "hostedModelId": "meta-llama/Llama-3-8B-Instruct", "maxModelLen": 8192.0,
		"tensorParallel": 2.0, "dtype": "bfloat16", "enabled": false, "tenant": "default", "updated_by": "trainer",
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	got = p.Want(200, "PUT", "/llm/endpoints/LLAMA-3-8B", controlplanetest.Operator, `{"engine":"tgi","hostedModelId":"x","maxModelLen":1}`).Object(t)
	if got["engine"] != "tgi" || got["tensorParallel"] != 1.0 || got["dtype"] != "auto" || got["enabled"] != true || got["updated_by"] != "operator" {
		t.Fatalf(`endpoint %v; want got["engine"] == "tgi" && got["tensorParallel"] == 1.0 && got["dtype"] == "auto" && got["enabled"] == true && got["updated_by"] == "operator"`, got)
	}
	p.Want(200, "PUT", "/llm/endpoints/qwen", controlplanetest.Operator, fullEndpoint("qwen"))
	if list := listItems(t, p, "/llm/endpoints", controlplanetest.Reader); len(list) != 2 || list[0]["model"] != "LLAMA-3-8B" || list[1]["model"] != "QWEN" {
		t.Fatalf(`list %v; want len(list) == 2 && list[0]["model"] == "LLAMA-3-8B" && list[1]["model"] == "QWEN"`, list)
	}
	page := p.Want(200, "GET", "/llm/endpoints?limit=1", controlplanetest.Reader, nil).Object(t)
	if rest := listItems(t, p, "/llm/endpoints?limit=1&cursor="+page["next_cursor"].(string), controlplanetest.Reader); len(rest) != 1 || rest[0]["model"] != "QWEN" {
		t.Fatalf(`second page %v; want len(rest) == 1 && rest[0]["model"] == "QWEN"`, rest)
	}
	// Old and new values are on record.
	audits := p.Audits("llm_endpoint.set")
	if len(audits) != 3 || audits[0]["details"].(map[string]any)["old"] != nil {
		t.Fatalf(`audit %v; want len(audits) == 3 && audits[0]["details"].(map[string]any)["old"] == nil`, audits)
	}
	if d := audits[1]["details"].(map[string]any); d["old"].(map[string]any)["engine"] != "vllm" || d["new"].(map[string]any)["engine"] != "tgi" {
		t.Fatalf(`audit %v; want d["old"].(map[string]any)["engine"] == "vllm" && d["new"].(map[string]any)["engine"] == "tgi"`, d)
	}
	p.Want(204, "DELETE", "/llm/endpoints/Qwen", controlplanetest.Operator, nil)
	p.Refused(404, "endpoint_not_found", "DELETE", "/llm/endpoints/Qwen", controlplanetest.Operator, nil)
	if got := p.Audits("llm_endpoint.removed"); len(got) != 1 || got[0]["details"].(map[string]any)["old"].(map[string]any)["model"] != "QWEN" {
		t.Fatalf(`audit %v; want len(got) == 1 && got[0]["details"].(map[string]any)["old"].(map[string]any)["model"] == "QWEN"`, got)
	}
}

func fullEndpoint(model string) map[string]any {
	return map[string]any{"model": model, "engine": "vllm", "hostedModelId": "m", "maxModelLen": 1024}
}

// Tenants neither see nor touch each other's endpoints; the platform's are visible to all, and a tenant's own replaces
// it.
func TestEndpointTenants(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Want(200, "PUT", "/llm/endpoints/a", controlplanetest.Operator, fullEndpoint("a"))
	p.Want(200, "PUT", "/llm/endpoints/b", controlplanetest.Operator, fullEndpoint("b"))
	if got := listItems(t, p, "/llm/endpoints", controlplanetest.Foreign); len(got) != 0 {
		t.Fatalf("foreign list %v; want len(got) == 0", got)
	}
	p.Refused(404, "endpoint_not_found", "DELETE", "/llm/endpoints/a", controlplanetest.Foreign, nil)
	p.SQL("update control_plane.llm_endpoints set tenant = 'platform'")
	p.Want(200, "PUT", "/llm/endpoints/b", controlplanetest.Foreign, map[string]any{"engine": "own", "hostedModelId": "m", "maxModelLen": 2})
	if got := listItems(t, p, "/llm/endpoints", controlplanetest.Foreign); len(got) != 2 || got[0]["tenant"] != "platform" || got[1]["engine"] != "own" {
		t.Fatalf(`foreign list %v; want len(got) == 2 && got[0]["tenant"] == "platform" && got[1]["engine"] == "own"`, got)
	}
	if got := listItems(t, p, "/llm/endpoints", controlplanetest.Reader); len(got) != 2 || got[1]["engine"] != "vllm" {
		t.Fatalf(`list %v; want len(got) == 2 && got[1]["engine"] == "vllm"`, got)
	}
	p.Refused(404, "endpoint_not_found", "DELETE", "/llm/endpoints/a", controlplanetest.Foreign, nil) // the platform's is not the tenant's
	p.Want(204, "DELETE", "/llm/endpoints/b", controlplanetest.Foreign, nil)
	if got := listItems(t, p, "/llm/endpoints", controlplanetest.Foreign); len(got) != 2 || got[1]["tenant"] != "platform" {
		t.Fatalf(`foreign list %v; want len(got) == 2 && got[1]["tenant"] == "platform"`, got)
	}
}

func TestEndpointsRefuseBadInput(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	for name, c := range map[string]struct {
		path   string
		change map[string]any // nil: leave out
		loc    string
	}{
		"other model":        {"a", map[string]any{"model": "b"}, "[body model]"},
		"bad name":           {"-a", map[string]any{}, "[path model]"},
		"no engine":          {"a", map[string]any{"engine": nil}, "[body engine]"},
		"no hosted model":    {"a", map[string]any{"hostedModelId": nil}, "[body hostedModelId]"},
		"no length":          {"a", map[string]any{"maxModelLen": nil}, "[body maxModelLen]"},
		"length 0":           {"a", map[string]any{"maxModelLen": 0}, "[body maxModelLen]"},
		"length 2^32 + 1":    {"a", map[string]any{"maxModelLen": 1<<32 + 1}, "[body maxModelLen]"},
		"parallel 0":         {"a", map[string]any{"tensorParallel": 0}, "[body tensorParallel]"},
		"parallel 5000":      {"a", map[string]any{"tensorParallel": 5000}, "[body tensorParallel]"},
		"empty dtype":        {"a", map[string]any{"dtype": ""}, "[body dtype]"},
		"line break":         {"a", map[string]any{"engine": "a\nb"}, "[body engine]"},
		"engine of too much": {"a", map[string]any{"engine": fmt.Sprintf("%0129d", 1)}, "[body engine]"},
	} {
		body := fullEndpoint("a")
		delete(body, "model")
		maps.Copy(body, c.change)
		maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
		r := p.Refused(422, "validation_error", "PUT", "/llm/endpoints/"+c.path, controlplanetest.Trainer, body).Object(t)
		if got := fmt.Sprint(r["errors"].([]any)[0].(map[string]any)["loc"]); got != c.loc {
			t.Errorf("%s: %v, want %s", name, r, c.loc)
		}
	}
	p.Refused(422, "validation_error", "PUT", "/llm/endpoints/a", controlplanetest.Trainer, `{"engine":"e","hostedModelId":"m","maxModelLen":1.5}`)
	p.Refused(422, "validation_error", "PUT", "/llm/endpoints/a", controlplanetest.Trainer, `{"engine":"e","hostedModelId":"m","maxModelLen":1,"url":"x"}`)
	p.Refused(403, "insufficient_scope", "PUT", "/llm/endpoints/a", controlplanetest.Reader, fullEndpoint("a"))
	p.Refused(403, "insufficient_scope", "DELETE", "/llm/endpoints/a", controlplanetest.Reader, nil)
}

// Each of ten concurrent changes reports its own change: the old value is the new one of the change before.
func TestConcurrentEndpointWriters(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			body := fullEndpoint("a")
			body["maxModelLen"] = i + 1
			if r, err := p.Try("PUT", "/llm/endpoints/a", controlplanetest.Trainer, body); err != nil || r.Status != 200 {
				t.Errorf("%v %d %s; want r.Status == 200", err, r.Status, r.Body)
			}
		})
	}
	wg.Wait()
	made, found := map[any]int{}, map[any]int{}
	for _, a := range p.Audits("llm_endpoint.set") {
		d := a["details"].(map[string]any)
		made[d["new"].(map[string]any)["maxModelLen"]]++
		if old, ok := d["old"].(map[string]any); ok {
			found[old["maxModelLen"]]++
		}
	}
	last := listItems(t, p, "/llm/endpoints", controlplanetest.Reader)[0]["maxModelLen"]
	found[last]++
	if len(made) != 10 || !maps.Equal(made, found) {
		t.Fatalf("made %v, found %v; want len(made) == 10 && maps.Equal(made, found)", made, found)
	}
}
