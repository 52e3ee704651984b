package governance_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

var provenanceHash = strings.Repeat("0a", 32)

func TestClassifications(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	got := p.Want(200, "PUT", "/compliance/jpcp/2", controlplanetest.Trainer, map[string]any{
		"riskClass": "high", "technicalFilePath": "docs/technical file.md", "provenanceHash": strings.ToUpper(provenanceHash),
	}).Object(t)
	for key, want := range map[string]any{
		"model": "JPCP", "version": "2", "riskClass": "high", "technicalFile": "docs/technical file.md", "provenance": provenanceHash,
		"tenant": "default", "updated_by": "trainer",
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	// Members missing from the body are removed.
	got = p.Want(200, "PUT", "/compliance/JPCP/2", controlplanetest.Operator, `{"riskClass":"limited"}`).Object(t)
	if got["riskClass"] != "limited" || got["technicalFile"] != nil || got["provenance"] != nil || got["updated_by"] != "operator" {
		t.Fatalf(`record %v; want got["riskClass"] == "limited" && got["technicalFile"] == nil && got["provenance"] == nil && got["updated_by"] == "operator"`, got)
	}
	audits := p.Audits("compliance.set")
	if len(audits) != 2 || audits[0]["details"].(map[string]any)["old"] != nil {
		t.Fatalf(`audit %v; want len(audits) == 2 && audits[0]["details"].(map[string]any)["old"] == nil`, audits)
	}
	if d := audits[1]["details"].(map[string]any); d["old"].(map[string]any)["provenance"] != provenanceHash || d["new"].(map[string]any)["riskClass"] != "limited" {
		t.Fatalf(`audit %v; want d["old"].(map[string]any)["provenance"] == provenanceHash && d["new"].(map[string]any)["riskClass"] == "limited"`, d)
	}
	for _, class := range []string{"minimal", "limited", "high", "prohibited"} {
		p.Want(200, "PUT", "/compliance/mack/"+class, controlplanetest.Operator, map[string]any{"riskClass": class})
	}
	if got := listItems(t, p, "/compliance", controlplanetest.Reader); len(got) != 5 || got[0]["model"] != "JPCP" || got[1]["version"] != "high" {
		t.Fatalf(`list %v; want len(got) == 5 && got[0]["model"] == "JPCP" && got[1]["version"] == "high"`, got)
	}
	if got := listItems(t, p, "/compliance?model=mack", controlplanetest.Reader); len(got) != 4 {
		t.Fatalf("list %v; want len(got) == 4", got)
	}
	page := p.Want(200, "GET", "/compliance?limit=3", controlplanetest.Reader, nil).Object(t)
	if rest := listItems(t, p, "/compliance?limit=3&cursor="+page["next_cursor"].(string), controlplanetest.Reader); len(rest) != 2 || rest[1]["version"] != "prohibited" {
		t.Fatalf(`second page %v; want len(rest) == 2 && rest[1]["version"] == "prohibited"`, rest)
	}
	// A hosted model is not in the repository, but can be classified.
	p.Refused(404, "model_not_found", "PUT", "/compliance/llama/1", controlplanetest.Operator, `{"riskClass":"minimal"}`)
	p.Want(200, "PUT", "/llm/endpoints/llama", controlplanetest.Operator, `{"engine":"vllm","hostedModelId":"m","maxModelLen":1}`)
	p.Want(200, "PUT", "/compliance/llama/1", controlplanetest.Operator, `{"riskClass":"minimal"}`)
	p.Refused(404, "model_not_found", "PUT", "/compliance/llama/1", controlplanetest.Foreign, `{"riskClass":"minimal"}`)
	// A tenant sees its own and the platform's; its own wins.
	if got := listItems(t, p, "/compliance", controlplanetest.Foreign); len(got) != 0 {
		t.Fatalf("foreign list %v; want len(got) == 0", got)
	}
	p.SQL("update control_plane.compliance set tenant = 'platform' where model_id = 'MACK'")
	p.Want(200, "PUT", "/compliance/mack/high", controlplanetest.Foreign, `{"riskClass":"minimal"}`)
	if got := listItems(t, p, "/compliance", controlplanetest.Foreign); len(got) != 4 || got[0]["riskClass"] != "minimal" || got[1]["tenant"] != "platform" {
		t.Fatalf(`foreign list %v; want len(got) == 4 && got[0]["riskClass"] == "minimal" && got[1]["tenant"] == "platform"`, got)
	}
	if got := listItems(t, p, "/compliance?model=mack", controlplanetest.Reader); len(got) != 4 || got[0]["riskClass"] != "high" {
		t.Fatalf(`list %v; want len(got) == 4 && got[0]["riskClass"] == "high"`, got)
	}
}

func TestClassificationsRefuseBadInput(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	refused := func(name, path string, body any, loc string) {
		t.Helper()
		r := p.Refused(422, "validation_error", "PUT", path, controlplanetest.Trainer, body).Object(t)
		if got := fmt.Sprint(r["errors"].([]any)[0].(map[string]any)["loc"]); got != loc {
			t.Errorf("%s: %v, want %s", name, r, loc)
		}
	}
	for _, path := range []string{
		"", ".", "..", "/etc/passwd", "../a", "a/../../b", "a/..", "a//b", "a/", "./a", `a\..\b`, "C:/a", "a\nb", strings.Repeat("a", 513),
	} {
		refused(path, "/compliance/jpcp/1", map[string]any{"riskClass": "high", "technicalFilePath": path}, "[body technicalFilePath]")
	}
	for _, hash := range []string{"", "0a", provenanceHash + "0", strings.Repeat("g", 64), " " + provenanceHash[1:]} {
		refused(hash, "/compliance/jpcp/1", map[string]any{"riskClass": "high", "provenanceHash": hash}, "[body provenanceHash]")
	}
	for _, class := range []any{"", "High", "unacceptable"} {
		refused(fmt.Sprint(class), "/compliance/jpcp/1", map[string]any{"riskClass": class}, "[body riskClass]")
	}
	refused("no class", "/compliance/jpcp/1", `{}`, "[body riskClass]")
	refused("version", "/compliance/jpcp/%20", `{"riskClass":"high"}`, "[path version]")
	p.Refused(404, "model_not_found", "PUT", "/compliance/nobody/1", controlplanetest.Trainer, `{"riskClass":"high"}`)
	p.Refused(403, "insufficient_scope", "PUT", "/compliance/jpcp/1", controlplanetest.Reader, `{"riskClass":"high"}`)
	if got := p.Audits("compliance.set"); len(got) != 0 {
		t.Fatalf("audit %v; want len(got) == 0", got)
	}
}

// Of two concurrent first writers, the second reports what the first wrote.
func TestConcurrentClassifiers(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	var wg sync.WaitGroup
	for _, class := range []string{"minimal", "limited", "high", "prohibited"} {
		wg.Go(func() {
			if r, err := p.Try("PUT", "/compliance/jpcp/1", controlplanetest.Trainer, map[string]any{"riskClass": class}); err != nil || r.Status != 200 {
				t.Errorf("%v %d %s; want r.Status == 200", err, r.Status, r.Body)
			}
		})
	}
	wg.Wait()
	found := map[any]bool{listItems(t, p, "/compliance", controlplanetest.Reader)[0]["riskClass"]: true}
	for _, a := range p.Audits("compliance.set") {
		if old, ok := a["details"].(map[string]any)["old"].(map[string]any); ok {
			found[old["riskClass"]] = true
		}
	}
	if len(found) != 4 {
		t.Fatalf("found %v; want len(found) == 4", found)
	}
}
