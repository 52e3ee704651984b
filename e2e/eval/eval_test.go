//go:build e2e && eval

package eval

import (
	"cmp"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	only     = flag.String("scenario", "", "only scenarios whose id, class or group is one of these, separated by commas")
	wording  = flag.String("wording", "", "only these wordings, separated by commas, such as symptom,typo")
	out      = flag.String("out", "", "file for the report as JSON")
	table    = flag.String("table", "", "file for the tables; empty: standard output")
	duration = flag.Duration("limit", 40*time.Minute, "time of the whole run; questions not asked by then are listed, and the run fails")
	engine   = flag.String("engine", "playbooks", "playbooks, or llm to judge a language model")
	endpoint = flag.String("url", "", "OpenAI-compatible endpoint of the model, with /v1; its key is OPENAI_API_KEY")
	model    = flag.String("model", "", "name of the model at that endpoint")
)

// TestEvaluation measures the assistant instead of testing it: it fails only if it could not measure.
func TestEvaluation(t *testing.T) {
	list, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if *only != "" {
		names := strings.Split(*only, ",")
		list = slices.DeleteFunc(list, func(s Scenario) bool {
			return !slices.Contains(names, s.ID) && !slices.Contains(names, s.Class) && !slices.Contains(names, s.Group)
		})
	}
	if *wording != "" {
		for _, s := range list {
			maps.DeleteFunc(s.Ask, func(w, _ string) bool { return !slices.Contains(strings.Split(*wording, ","), w) })
		}
	}
	if len(list) == 0 {
		t.Fatalf("no scenario is called %s", *only)
	}
	o := options{limit: *duration, answer: time.Minute, engine: *engine, env: []string{"ASSISTANT_ENGINE=" + *engine}, progress: os.Stderr}
	if *engine == "llm" {
		o.answer, o.engine = 5*time.Minute, "llm "+*model
		o.env = append(o.env, "OPENAI_BASE_URL="+*endpoint, "ASSISTANT_LLM_MODEL="+*model, "OPENAI_API_KEY="+cmp.Or(os.Getenv("OPENAI_API_KEY"), "none"))
	}
	r := evaluate(t, list, o)
	to := os.Stdout
	if *table != "" {
		if to, err = os.Create(*table); err != nil {
			t.Fatal(err)
		}
		defer to.Close()
	}
	r.Print(to)
	if *out != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*out, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.NotAsked) > 0 {
		t.Errorf("%d scenarios were not asked about; want all", len(r.NotAsked))
	}
}
