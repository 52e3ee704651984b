package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/mcpclient"
	"github.com/mlp-platform/platform/services/assistant/internal/model"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// offers are the tools of other servers.
type offers []mcpclient.Tool

func (o offers) Offered() []mcpclient.Tool { return append([]mcpclient.Tool{}, o...) }

func foreign(name string, writes bool) mcpclient.Tool {
	return mcpclient.Tool{Name: "mcp_wiki_" + name, About: "Of the wiki.", Schema: []byte(`{"type":"object"}`), Server: "wiki", Tool: name, Writes: writes}
}

var wiki = offers{foreign("search", false), foreign("page", true)}

// A writing tool of another server is proposed as the exact call.
func TestAnotherServersWriteIsProposed(t *testing.T) {
	t.Parallel()
	step := scripttest.Ask("mcp_wiki_page", `{"who": "carla"}`)
	step.Expect = scriptedmodel.Expect{Tools: []string{"mcp_wiki_search", "mcp_wiki_page"}}
	b := setup(t, model.Config{Servers: wiki}, scripttest.Always(step))
	out, _ := b.ask(newTurn("page carla"))
	want := operation.Operation{Verb: operation.WriteTool, Server: "wiki", Tool: "page", Arguments: `{"who":"carla"}`}
	if len(out.Write) != 1 || fmt.Sprint(out.Write[0]) != fmt.Sprint(want) || out.Choice == nil {
		t.Errorf("got %+v; want %+v, as a model's choice", out, want)
	}
	if got := b.cluster.verbs(); got != "" {
		t.Errorf("calls %q; want none", got)
	}
}

// Where nothing may be proposed, writing tools are not offered, and calls to them are refused nevertheless.
func TestAnotherServersWriteIsWithheld(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bundle) string{
		"a program asks": func(b *bundle) string {
			q := newTurn("page carla")
			q.Unspoken = true
			out, text := b.ask(q)
			return fmt.Sprint(len(out.Write), text)
		},
		"a denial": func(b *bundle) string {
			q := newTurn("no")
			q.Settled = []action.Settled{{Action: action.Action{State: action.Denied, Command: "page"}}}
			out, text := b.ask(q)
			return fmt.Sprint(len(out.Write), text)
		},
	} {
		step := scripttest.Ask("mcp_wiki_page", `{"who":"carla"}`)
		step.Expect = scriptedmodel.Expect{Tools: []string{"mcp_wiki_search"}, NoTools: []string{"mcp_wiki_page"}}
		b := setup(t, model.Config{Servers: wiki}, scripttest.Always(step, scripttest.Say("As you wish.")))
		if got := change(b); !strings.HasPrefix(got, "0 As you wish.") && !strings.HasPrefix(got, "0As you wish.") {
			t.Errorf("%s: got %q; want no write", name, got)
		}
		wantIn(t, b.last().Text(), "there is no tool")
	}
}

// Other servers' tools are offered only up to half of the window, and those of the cluster come first.
func TestToolsOfOtherServersFitTheWindow(t *testing.T) {
	t.Parallel()
	var many offers
	for i := range 300 {
		many = append(many, foreign(fmt.Sprintf("tool%03d", i), false))
	}
	for window, most := range map[int]int{1_000_000: 128, 16_000: 128} {
		b := setup(t, model.Config{Servers: many, Window: window}, scripttest.Always(scripttest.Say("Well.")))
		b.ask(newTurn("what is wrong?"))
		got := len(b.last().Tools)
		if got > most || !b.last().Offers("logs") {
			t.Errorf("a window of %d: %d tools; want at most %d, those of the cluster among them", window, got, most)
		}
		if window == 1_000_000 && got != most {
			t.Errorf("a window of %d: %d tools; want %d", window, got, most)
		}
		wantIn(t, b.log.String(), "they do not fit")
	}
}

// Another server's answer counts as hearsay: a failed call may be repeated, and an answer names its source.
func TestAnotherServersAnswerIsHearsay(t *testing.T) {
	t.Parallel()
	ask := scripttest.Ask("mcp_wiki_search", `{}`)
	end := scripttest.Say("The queue `queue-9` is full.")
	b := setup(t, model.Config{Servers: wiki}, scripttest.Always(ask, ask, end))
	b.cluster.fails = operation.Refuse(operation.Unavailable, "", "The server wiki does not answer now.")
	b.cluster.once = true
	_, text := b.ask(newTurn("what is wrong?"))
	if got := b.cluster.verbs(); got != "read_tool read_tool" {
		t.Errorf("calls %q; want the failed one made again", got)
	}
	wantIn(t, text, "Other servers were asked beside the cluster", "`wiki`")
}
