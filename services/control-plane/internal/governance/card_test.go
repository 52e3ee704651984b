package governance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/governance"
)

// repository is a copy of the samples in which JPCP has no README, MACK's is blank and MCBOUND's is too long.
func copyRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(controlplanetest.Samples())); err != nil {
		t.Fatal(err)
	}
	models := filepath.Join(dir, "models")
	if err := os.Remove(filepath.Join(models, "power_consumption_prediction", "JPCP", "README.md")); err != nil {
		t.Fatal(err)
	}
	for model, text := range map[string]string{"MACK": " \n", "MCBound": strings.Repeat("x", governance.MaxMarkdown+1), "RuntimeClass": strings.Repeat("y", governance.MaxMarkdown)} {
		if err := os.WriteFile(filepath.Join(models, "performance_prediction", model, "README.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func listCards(t *testing.T, p *controlplanetest.Plane, path, bearer string) (map[string]any, []map[string]any) {
	t.Helper()
	doc := p.Want(200, "GET", path, bearer, nil).Object(t)
	var out []map[string]any
	for _, v := range doc["items"].([]any) {
		out = append(out, v.(map[string]any))
	}
	return doc, out
}

func formatCoverage(doc map[string]any) string {
	return fmt.Sprint(doc["withCard"], doc["withoutCard"], doc["coverage"], doc["total"])
}

func TestCards(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "MODELREPO_DIR="+copyRepository(t))
	// READMEs serve as cards.
	got := p.Want(200, "GET", "/model-cards/runtimeregressor", controlplanetest.Reader, nil).Object(t)
	if got["model"] != "RUNTIMEREGRESSOR" || got["source"] != "repository" || got["version"] != nil || got["tenant"] != nil || got["updated_by"] != nil || !strings.HasPrefix(got["markdown"].(string), "#") {
		t.Fatalf(`card %v; want got["model"] == "RUNTIMEREGRESSOR" && got["source"] == "repository" && got["version"] == nil && got["tenant"] == nil && got["updated_by"] == nil && …`, got)
	}
	for _, model := range []string{"jpcp", "mack", "mcbound"} {
		p.Refused(404, "card_not_found", "GET", "/model-cards/"+model, controlplanetest.Reader, nil)
	}
	p.Refused(404, "model_not_found", "GET", "/model-cards/nobody", controlplanetest.Reader, nil)
	doc, all := listCards(t, p, "/model-cards", controlplanetest.Reader)
	if formatCoverage(doc) != "2 3 0.4 5" || len(all) != 2 || all[0]["model"] != "RUNTIMECLASS" || len(all[0]["markdown"].(string)) != governance.MaxMarkdown || all[1]["source"] != "repository" {
		t.Fatalf(`list %s, %d cards; want formatCoverage(doc) == "2 3 0.4 5" && len(all) == 2 && all[0]["model"] == "RUNTIMECLASS" && len(all[0]["markdown"].(string)) == governance.MaxMarkdown && …`, formatCoverage(doc), len(all))
	}
	// A written card replaces the README.
	text := "# Card\n\nUse <with> care: é\n"
	got = p.Want(200, "PUT", "/model-cards/RuntimeRegressor", controlplanetest.Trainer, map[string]any{"model": "runtimeregressor", "version": "3", "markdown": text, "source": "trainer"}).Object(t)
	for key, want := range map[string]any{"model": "RUNTIMEREGRESSOR", "version": "3", "markdown": text, "source": "trainer", "tenant": "default", "updated_by": "trainer"} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	p.Want(200, "PUT", "/model-cards/jpcp", controlplanetest.Operator, map[string]any{"markdown": text})
	p.Want(200, "PUT", "/llm/endpoints/llama", controlplanetest.Operator, `{"engine":"vllm","hostedModelId":"m","maxModelLen":1}`)
	doc, all = listCards(t, p, "/model-cards", controlplanetest.Reader)
	if formatCoverage(doc) != "3 3 0.5 6" || len(all) != 3 || all[0]["model"] != "JPCP" || all[0]["source"] != "api" || all[2]["source"] != "trainer" {
		t.Fatalf(`list %s, %d cards; want formatCoverage(doc) == "3 3 0.5 6" && len(all) == 3 && all[0]["model"] == "JPCP" && all[0]["source"] == "api" && all[2]["source"] == "trainer"`, formatCoverage(doc), len(all))
	}
	p.Refused(404, "card_not_found", "GET", "/model-cards/llama", controlplanetest.Reader, nil)
	// Old and new are on record, by their digests.
	p.Want(200, "PUT", "/model-cards/jpcp", controlplanetest.Trainer, map[string]any{"markdown": strings.Repeat("z", governance.MaxMarkdown)})
	audits := p.Audits("model_card.set")
	if d := audits[2]["details"].(map[string]any); len(audits) != 3 || d["old"].(map[string]any)["bytes"] != float64(len(text)) || d["new"].(map[string]any)["bytes"] != float64(governance.MaxMarkdown) ||
		d["old"].(map[string]any)["sha256"] == d["new"].(map[string]any)["sha256"] {
		t.Fatalf(`audit %v; want len(audits) == 3 && d["old"].(map[string]any)["bytes"] == float64(len(text)) && d["new"].(map[string]any)["bytes"] == float64(governance.MaxMarkdown) && …`, audits)
	}
	// Another tenant's cards are invisible; the platform's are visible, except where there is an own one.
	if got := p.Want(200, "GET", "/model-cards/runtimeregressor", controlplanetest.Foreign, nil).Object(t); got["source"] != "repository" {
		t.Fatalf(`foreign card %v; want got["source"] == "repository"`, got)
	}
	if doc, _ := listCards(t, p, "/model-cards", controlplanetest.Foreign); formatCoverage(doc) != "2 3 0.4 5" {
		t.Fatalf(`foreign list %s; want "2 3 0.4 5"`, formatCoverage(doc))
	}
	p.SQL("update control_plane.model_cards set tenant = 'platform'")
	p.Want(200, "PUT", "/model-cards/jpcp", controlplanetest.Foreign, `{"markdown":"own"}`)
	if doc, all := listCards(t, p, "/model-cards", controlplanetest.Foreign); formatCoverage(doc) != "3 2 0.6 5" || all[0]["markdown"] != "own" || all[2]["source"] != "trainer" {
		t.Fatalf(`foreign list %s, %v; want formatCoverage(doc) == "3 2 0.6 5" && all[0]["markdown"] == "own" && all[2]["source"] == "trainer"`, formatCoverage(doc), all[0])
	}
	if got := p.Want(200, "GET", "/model-cards/jpcp", controlplanetest.Reader, nil).Object(t); got["tenant"] != "platform" {
		t.Fatalf(`card %v; want "platform"`, got["tenant"])
	}
}

// A page ends at its limit, or when its text becomes too long.
func TestCardPages(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	for i := range 18 {
		model := fmt.Sprintf("llm-%02d", i)
		p.Want(200, "PUT", "/llm/endpoints/"+model, controlplanetest.Operator, `{"engine":"vllm","hostedModelId":"m","maxModelLen":1}`)
		p.Want(200, "PUT", "/model-cards/"+model, controlplanetest.Operator, map[string]any{"markdown": strings.Repeat("x", governance.MaxMarkdown)})
	}
	for limit, most := range map[int]int{2: 2, 500: 21} {
		seen, cursor := map[any]bool{}, ""
		for {
			doc, cards := listCards(t, p, fmt.Sprintf("/model-cards?limit=%d&cursor=%s", limit, cursor), controlplanetest.Reader)
			size := 0
			for _, c := range cards {
				seen[c["model"]] = true
				size += len(c["markdown"].(string))
			}
			if len(cards) > most || size > 4<<20 || formatCoverage(doc) != "23 0 1 23" {
				t.Fatalf(`limit %d: %d cards of %d bytes, %s; want len(cards) <= most && size <= 4 << 20 && formatCoverage(doc) == "23 0 1 23"`, limit, len(cards), size, formatCoverage(doc))
			}
			if doc["next_cursor"] == nil {
				break
			}
			cursor = doc["next_cursor"].(string)
		}
		if len(seen) != 23 {
			t.Errorf("limit %d: %d cards; want len(seen) == 23", limit, len(seen))
		}
	}
}

func TestCardsRefuseBadInput(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	for name, c := range map[string]struct {
		body any
		loc  string
	}{
		"none":        {map[string]any{}, "[body markdown]"},
		"blank":       {map[string]any{"markdown": " \n\t"}, "[body markdown]"},
		"too long":    {map[string]any{"markdown": strings.Repeat("x", governance.MaxMarkdown+1)}, "[body markdown]"},
		"bytes count": {map[string]any{"markdown": strings.Repeat("é", governance.MaxMarkdown/2) + "x"}, "[body markdown]"},
		"other model": {map[string]any{"markdown": "x", "model": "mack"}, "[body model]"},
		"version":     {map[string]any{"markdown": "x", "version": ""}, "[body version]"},
		"no source":   {map[string]any{"markdown": "x", "source": ""}, "[body source]"},
		"README":      {map[string]any{"markdown": "x", "source": "repository"}, "[body source]"},
	} {
		r := p.Refused(422, "validation_error", "PUT", "/model-cards/jpcp", controlplanetest.Trainer, c.body).Object(t)
		if got := fmt.Sprint(r["errors"].([]any)[0].(map[string]any)["loc"]); got != c.loc {
			t.Errorf("%s: %v, want %s", name, r, c.loc)
		}
	}
	p.Refused(404, "model_not_found", "PUT", "/model-cards/nobody", controlplanetest.Trainer, `{"markdown":"x"}`)
	p.Refused(403, "insufficient_scope", "PUT", "/model-cards/jpcp", controlplanetest.Reader, `{"markdown":"x"}`)
	p.Refused(422, "validation_error", "GET", "/model-cards?cursor=x", controlplanetest.Reader, nil)
}

// Of concurrent first writers, each reports the state it found.
func TestConcurrentCardWriters(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			if r, err := p.Try("PUT", "/model-cards/jpcp", controlplanetest.Trainer, map[string]any{"markdown": strings.Repeat("x", i+1)}); err != nil || r.Status != 200 {
				t.Errorf("%v %d %s; want r.Status == 200", err, r.Status, r.Body)
			}
		})
	}
	wg.Wait()
	found := map[any]bool{float64(len(p.Want(200, "GET", "/model-cards/jpcp", controlplanetest.Reader, nil).Object(t)["markdown"].(string))): true}
	for _, a := range p.Audits("model_card.set") {
		if old, ok := a["details"].(map[string]any)["old"].(map[string]any); ok {
			found[old["bytes"]] = true
		}
	}
	if len(found) != 6 {
		t.Fatalf("found %v; want len(found) == 6", found)
	}
}
