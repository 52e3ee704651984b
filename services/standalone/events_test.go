package standalone_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/outbox/outboxtest"
	"github.com/mlp-platform/platform/services/assistant"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	dashboard "github.com/mlp-platform/platform/services/dashboard-bff"
	"github.com/mlp-platform/platform/services/inference"
)

var update = flag.Bool("update", false, "rewrite the generated part of docs/events.md")

const (
	eventsPage = "../../docs/events.md"
	// below begins the part of the page that is made from the declarations.
	below = "<!-- Below: go test ./services/standalone -run TestEventsPage -update -->\n"
)

// publisher is a service and its declared events.
type publisher struct {
	name          string
	events        outbox.Catalogue
	subscriptions []outbox.Subscription
}

func eventPublishers() []publisher {
	return []publisher{
		{"assistant", assistant.Events(), nil},
		{"control-plane", controlplane.Events(), controlplane.Subscriptions()},
		{"dashboard", dashboard.Events(), dashboard.Subscriptions()},
		{"inference", inference.Events(), nil},
	}
}

// TestEventsPage compares docs/events.md with the events that the services declare, and so with those that they emit:
// each refuses to write an event that it did not declare.
func TestEventsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(eventsPage)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(page), below)
	if !ok {
		t.Fatalf("%s lacks the line %q; want ok", eventsPage, below)
	}
	want := head + below + renderCatalogue()
	if *update {
		if err := os.WriteFile(eventsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Fatalf("%s is not what the services declare; run the command that it names; want string(page) == %v", eventsPage, want)
	}
}

// renderCatalogue is the catalogue as Markdown: a table of all events, then the data of each.
func renderCatalogue() string {
	type entry struct {
		outbox.Declaration
		by, to []string
	}
	all := map[string]*entry{}
	for _, p := range eventPublishers() {
		for name, d := range p.events {
			if all[name] == nil {
				all[name] = &entry{Declaration: d}
			}
			all[name].by = append(all[name].by, p.name)
		}
	}
	for _, p := range eventPublishers() {
		for _, s := range p.subscriptions {
			for _, e := range all {
				if outboxtest.Matches(s, e.Declaration) {
					e.to = append(e.to, fmt.Sprintf("%s (`%s`)", p.name, s.Consumer))
				}
			}
		}
	}
	var b bytes.Buffer
	b.WriteString("\n| Event | When | Tenant | Publisher | Consumer |\n|---|---|---|---|---|\n")
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		e := all[name]
		tenant := "the actor's"
		if e.Platform {
			tenant = "`platform`"
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s | %s |\n", name, strings.ReplaceAll(name, ".", ""), e.When, tenant, strings.Join(e.by, ", "), strings.Join(e.to, ", "))
	}
	for _, name := range names {
		fmt.Fprintf(&b, "\n### %s\n\n`urn:platform:event:%s:1`, subject `platform.<tenant>.%s`.\n\n| Member | Type | |\n|---|---|---|\n", name, name, name)
		for _, f := range outboxtest.Fields(all[name].Declaration) {
			note := ""
			switch {
			case f.Optional:
				note = "may be absent"
			case f.Null:
				note = "may be null"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, f.Type, note)
		}
	}
	return b.String()
}
