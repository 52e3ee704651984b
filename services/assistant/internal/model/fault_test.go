package model_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/model"
)

// soon makes a client repeat its request immediately.
var soon = map[string]string{"Retry-After-Ms": "1"}

func failTimes(n int, f scriptedmodel.Fault) scriptedmodel.Step {
	s := scripttest.Say("Recovered.")
	s.Faults = slices.Repeat([]scriptedmodel.Fault{f}, n)
	return s
}

func TestFaultsFallBack(t *testing.T) {
	t.Parallel()
	long := scripttest.Say(strings.Repeat("The cause may be this. ", 40))
	cut, hung := long, long
	cut.CutAfter, hung.HangAfter = 100, 100
	short := scripttest.Say("Just a few words and then it is over.")
	short.CutAfter = 3
	for _, c := range []struct {
		name, reason string
		step         scriptedmodel.Step
		requests     int
		said         string // before the playbooks' answer
	}{
		{"401", "unauthorized", failTimes(9, scriptedmodel.Fault{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + key + `"}}`}), 1, ""},
		{"400", "refused", failTimes(9, scriptedmodel.Fault{Status: 400}), 1, ""},
		{"429", "rate_limited", failTimes(9, scriptedmodel.Fault{Status: 429, Header: soon}), 3, ""},
		{"429 with a long wait", "rate_limited", failTimes(9, scriptedmodel.Fault{Status: 429, Header: map[string]string{"Retry-After": "3600"}}), 1, ""},
		{"500", "server_error", failTimes(9, scriptedmodel.Fault{Status: 500, Header: soon}), 3, ""},
		{"hang", "stalled", failTimes(9, scriptedmodel.Fault{Hang: true}), 1, ""},
		{"error event", "error_event", failTimes(9, scriptedmodel.Fault{Event: `{"error":{"message":"overloaded, key ` + key + `"}}`}), 1, ""},
		{"no JSON", "protocol", failTimes(9, scriptedmodel.Fault{Event: `{"choices":[`}), 1, ""},
		{"no events", "cut", failTimes(9, scriptedmodel.Fault{Status: 200, Body: "<html>hello</html>"}), 1, ""},
		{"cut", "cut", cut, 1, "The cause may be this."},
		{"cut early", "cut", short, 1, "Just a few"},
		{"hang in the middle", "stalled", hung, 1, "The cause may be this."},
		{"empty", "empty", scripttest.Say(""), 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := model.Config{}
			if c.reason == "stalled" {
				config.Stall = 2 * time.Second
			}
			b := setup(t, config, scripttest.Always(c.step))
			out, text := b.ask(newTurn("why does api crash?"))
			if !slices.Equal(b.fell, []string{c.reason}) {
				t.Errorf("fell back for %q, want %q", b.fell, c.reason)
			}
			if n := len(b.server.Bodies()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
			if out.Partial != "" || b.playbooks.asked != 1 {
				t.Errorf(`partial %q, playbooks asked %d times; want out.Partial == "" && b.playbooks.asked == 1`, out.Partial, b.playbooks.asked)
			}
			if !slices.Equal(b.sink.warned, []fault.Failure{fault.ModelUnavailable}) {
				t.Errorf("warned of %v; want slices.Equal(b.sink.warned, []fault.Failure{fault.ModelUnavailable})", b.sink.warned)
			}
			said, rest, ok := strings.Cut(text, fault.ModelUnavailable.Message+"\n\nPlaybooks on: why does api crash?")
			if !ok || rest != "" || c.said == "" && said != "" || !strings.HasPrefix(said, c.said) || said != "" && !strings.HasSuffix(said, "\n\n") {
				t.Errorf("answer %q; want ok && rest == \"\" && (c.said != \"\" || said == \"\") && strings.HasPrefix(said, c.said) && (said == \"\" || strings.HasSuffix(said, \"\\n\\n\"))", text)
			}
			wantNotIn(t, b.log.String(), key)
		})
	}
}

func TestFaultsThatPass(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]scriptedmodel.Fault{
		"429": {Status: 429, Header: soon},
		"500": {Status: 500, Header: soon},
	} {
		b := setup(t, model.Config{}, scripttest.Always(failTimes(2, f)))
		if _, text := b.ask(newTurn("why does api crash?")); text != "Recovered." || len(b.fell) != 0 {
			t.Errorf(`%s: %q, fell back for %q; want text == "Recovered." && len(b.fell) == 0`, name, text, b.fell)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	b := setup(t, model.Config{}, scripttest.Always(scripttest.Say("Well.")))
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	e, err := model.New(model.Config{BaseURL: gone.URL + "/v1", Model: "m", Time: 5 * time.Second}, b.playbooks, discard, model.Hooks{
		FellBack: func(reason string) { b.fell = append(b.fell, reason) },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Engine = e
	if b.ask(newTurn("why?")); !slices.Equal(b.fell, []string{"unreachable"}) {
		t.Errorf(`fell back for %q; want slices.Equal(b.fell, []string{"unreachable"})`, b.fell)
	}
}

// TestNoOtherHost has an endpoint that redirects the request, and its key, to another host.
func TestNoOtherHost(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	endpoint := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/chat/completions", http.StatusTemporaryRedirect))
	t.Cleanup(endpoint.Close)
	b := setup(t, model.Config{}, scripttest.Always(scripttest.Say("Well.")))
	e, err := model.New(model.Config{BaseURL: endpoint.URL + "/v1", Model: "m", Key: key, Time: 5 * time.Second}, b.playbooks, discard, model.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	b.Engine = e
	b.ask(newTurn("why?"))
	if asked.Load() != 0 || b.playbooks.asked != 1 {
		t.Errorf("the other host was asked %d times, the playbooks %d times; want asked.Load() == 0 && b.playbooks.asked == 1", asked.Load(), b.playbooks.asked)
	}
}

func TestCallsThatAreNotRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, tool, arguments, told string }{
		{"broken JSON", "list", `{"kind":"pods",`, "The arguments are no JSON object"},
		{"wrong type", "list", `{"kind":7}`, "wrong type"},
		{"unknown member", "list", `{"kind":"pods","as":"admin"}`, "takes no"},
		{"flag as a name", "get", `{"kind":"pod","name":"--server=http://x"}`, "name"},
		{"unknown tool", "exec; rm -rf /", `{}`, "there is no tool"},
		{"no name", "", `{}`, "there is no tool"},
		{"a tool of the server's own", "decisions", `{}`, "there is no tool"},
		{"namespace that is none", "diagnose", `{"namespace":"--all"}`, "must be the name of a namespace"},
		{"huge arguments", "diff", `{"manifest":"` + strings.Repeat("x", 700_000) + `"}`, "over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			end := scripttest.Say("So be it.")
			end.Expect.Has = []string{"Not run: ", c.told}
			b := setup(t, model.Config{Tokens: 1 << 20}, scripttest.Always(scripttest.Ask(c.tool, c.arguments), end))
			if _, text := b.ask(newTurn("why does api crash?")); text != "So be it." {
				t.Errorf(`answer %q; want "So be it."`, text)
			}
			if len(b.cluster.calls) != 0 {
				t.Errorf("ran %v; want len(b.cluster.calls) == 0", b.cluster.calls)
			}
		})
	}
}

func TestTheSameCallAgainAndAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, model.Config{}, scripttest.Always(scripttest.Ask("list", `{"kind":"pods","namespace":"shop"}`)))
	out, text := b.ask(newTurn("why does api crash?"))
	if out.Partial != "model_loop" || len(b.cluster.calls) != 1 {
		t.Errorf(`partial %q after %d calls; want out.Partial == "model_loop" && len(b.cluster.calls) == 1`, out.Partial, len(b.cluster.calls))
	}
	if n := len(b.server.Bodies()); n > 6 {
		t.Errorf("%d requests; want n <= 6", n)
	}
	wantIn(t, b.last().Text(), "this call was already made")
	wantIn(t, text, "crash loop", "kept repeating the same request") // the playbooks' findings, and the reason for stopping
}

func TestThousandsOfToolCalls(t *testing.T) {
	t.Parallel()
	flood := scriptedmodel.Step{Calls: []scriptedmodel.Call{{Name: "list", Arguments: `{"kind":"pods","namespace":"shop"}`, Times: 5000}}}
	b := setup(t, model.Config{}, scripttest.Always(flood, scripttest.Say("Enough.")))
	if _, text := b.ask(newTurn("why does api crash?")); text != "Enough." {
		t.Errorf(`answer %q; want "Enough."`, text)
	}
	if len(b.cluster.calls) != 1 {
		t.Errorf("%d calls were run; want 1", len(b.cluster.calls))
	}
	wantIn(t, b.last().Text(), "were dropped; at most 16")
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	var many []scriptedmodel.Step
	for i := range 60 {
		many = append(many, scripttest.Ask("list", fmt.Sprintf(`{"kind":"pods","namespace":"n%d"}`, i)))
	}
	words := scripttest.Say("word ")
	words.Repeat = 20_000
	hang := scriptedmodel.Step{Faults: []scriptedmodel.Fault{{Hang: true}}, Answer: []string{"late"}}
	for _, c := range []struct {
		name, partial string
		config        model.Config
		script        scriptedmodel.Script
		calls         int
	}{
		{"tool calls", "budget_tool_calls", model.Config{ToolCalls: 5, Tokens: 1 << 20}, scripttest.Always(many...), 5},
		{"tokens of the conversation", "budget_tokens", model.Config{Tokens: 11000}, scripttest.Always(many...), -1},
		{"tokens of one answer", "budget_tokens", model.Config{Tokens: 9000}, scripttest.Always(words), 0},
		{"tokens for nothing", "budget_tokens", model.Config{Tokens: 100}, scripttest.Always(words), 0},
		{"money", "budget_cost", model.Config{PromptPrice: 10, AnswerPrice: 30, Cost: 0.5, Tokens: 1 << 20}, scripttest.Always(many...), -1},
		{"money of one answer", "budget_cost", model.Config{AnswerPrice: 30, Cost: 0.01, Tokens: 1 << 20}, scripttest.Always(words), 0},
		{"time", "budget_seconds", model.Config{Time: 200 * time.Millisecond}, scripttest.Always(hang), 0},
		{"huge answer", "answer_too_long", model.Config{Tokens: 10 << 20}, scripttest.Always(scriptedmodel.Step{Answer: []string{strings.Repeat("x", 10_000)}, Repeat: 1000}), 0},
		{"model's own limit", "model_length", model.Config{}, scripttest.Always(scriptedmodel.Step{Answer: []string{"The cause"}, Finish: "length"}), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.config, c.script)
			out, text := b.ask(newTurn("why does api crash?"))
			if out.Partial != c.partial || len(b.fell) != 0 {
				t.Errorf("partial %q, want %q; fell back for %q", out.Partial, c.partial, b.fell)
			}
			if c.calls >= 0 && len(b.cluster.calls) != c.calls {
				t.Errorf("%d calls, want %d", len(b.cluster.calls), c.calls)
			}
			wantIn(t, text, "This answer is incomplete: ")
			if len(text) > 300_000 {
				t.Errorf("%d bytes of answer; want len(text) <= 300_000", len(text))
			}
			spent := strings.HasPrefix(c.partial, "budget")
			if got := slices.Contains(b.sink.warned, fault.BudgetSpent); got != spent {
				t.Errorf("told of a spent budget: %v; want %v", got, spent)
			}
			// The last request holds the whole conversation, so its tokens are the new ones.
			fresh := out.Usage.PromptTokens + out.Usage.CompletionTokens
			if bodies := b.server.Bodies(); len(bodies) > 1 {
				fresh = int64(len(bodies[len(bodies)-1]) / 4)
			}
			if most := int64(c.config.Tokens); most != 0 && fresh > most+most/8+100 {
				t.Errorf("used %d of %d tokens", fresh, most)
			}
		})
	}
}

func TestUsageIsEstimatedWhereNobodyCounts(t *testing.T) {
	t.Parallel()
	b := setup(t, model.Config{}, scripttest.Always(scripttest.Say(strings.Repeat("four", 100))))
	out, _ := b.ask(newTurn("why does api crash?"))
	if out.Usage.CompletionTokens != 100 {
		t.Errorf("%d tokens of answer, want 100", out.Usage.CompletionTokens)
	}
	body := int64(len(b.server.Bodies()[0]))
	if got := out.Usage.PromptTokens; got < body/8 || got > body/2 {
		t.Errorf("%d tokens for a request of %d bytes; want got >= body / 8 && got <= body / 2", got, body)
	}
}

func TestWhatTheModelSaysIsPlain(t *testing.T) {
	t.Parallel()
	b := setup(t, model.Config{}, scripttest.Always(scriptedmodel.Step{Answer: []string{"see ![x", "](http", "://evil/", "?q=1) \U0001F6D1 <img src=x>\n```\nopen"}}))
	_, text := b.ask(newTurn("why does api crash?"))
	if want := "see ![x]\\(`http://evil/?q=1`) \U0001F6D1 \\<img src=x>\n```\nopen\n```\n"; text != want {
		t.Errorf("answer %q, want %q", text, want)
	}
	// The stop sign of approval prompts does not reach the wire: frames lack it.
	if got := chat.Prose(text); strings.Contains(got, "\U0001F6D1") {
		t.Errorf("a frame would carry %q; want !strings.Contains(got, \"\\U0001F6D1\")", got)
	}
}

func TestALongPreambleIsFollowedByItsReads(t *testing.T) {
	t.Parallel()
	look := scripttest.Ask("list", `{"kind":"pods","namespace":"shop"}`)
	look.Answer = strings.SplitAfter(strings.Repeat("I will look at all of it. ", 20), " ")
	b := setup(t, model.Config{}, scripttest.Always(look, scripttest.Say("It is the limit.")))
	_, text := b.ask(newTurn("why does api crash?"))
	if want := strings.Repeat("I will look at all of it. ", 20) + "\n\nIt is the limit."; text != want {
		t.Errorf("answer %q; want %v", text, want)
	}
}

func TestAToolThatFails(t *testing.T) {
	t.Parallel()
	end := scripttest.Say("It cannot be read.")
	end.Expect.Has = []string{"Failed: the cluster does not answer"}
	b := setup(t, model.Config{}, scripttest.Always(scripttest.Ask("list", `{"kind":"pods"}`), end))
	b.cluster.fails = errDown
	if _, text := b.ask(newTurn("why does api crash?")); text != "It cannot be read." {
		t.Errorf(`answer %q; want "It cannot be read."`, text)
	}
}
