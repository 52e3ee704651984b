package registry

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/clip"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// maxEvents limits the events of one result, the newest ones; maxMessage their messages, in characters.
const (
	maxEvents  = 200
	maxMessage = 500
)

func eventsInTime(ctx context.Context, box turn.Toolbox, a eventsArguments) (Result, error) {
	if a.Minutes < 0 || a.Minutes > maxHours*60 {
		return Result{}, operation.Refuse(operation.InvalidArgument, "minutes", "minutes must be 1 to %d.", maxHours*60)
	}
	about, namespace, err := scopeOf(ctx, box, operation.Reference{Namespace: a.Namespace, Kind: a.Kind, Name: a.Name})
	if err != nil {
		return Result{}, err
	}
	a.Namespace = namespace
	s, err := snapshotOf(ctx, box, a.Namespace)
	if err != nil {
		return Result{}, err
	}
	list := &Timeline{Events: []Event{}}
	for i := range s.Events {
		e := &s.Events[i]
		switch {
		case a.Namespace != "" && e.Namespace != a.Namespace && e.InvolvedObject.Namespace != a.Namespace:
		case about != nil && (e.InvolvedObject.Kind != about.Kind || e.InvolvedObject.Name != about.Name || e.InvolvedObject.Namespace != about.Namespace):
		case a.Minutes > 0 && s.Taken.Sub(engine.LastSeen(e).Time) > time.Duration(a.Minutes)*time.Minute:
		default:
			list.Events = append(list.Events, eventOf(e))
		}
	}
	slices.SortStableFunc(list.Events, func(a, b Event) int {
		return cmp.Or(lastOf(a).Compare(lastOf(b)), cmp.Compare(a.Event.Name, b.Event.Name))
	})
	left := max(0, len(list.Events)-maxEvents)
	list.Events = list.Events[left:]
	lines := []string{"There are no such events. The cluster keeps events for a while only, mostly an hour."}
	if len(list.Events) > 0 {
		lines = []string{"Events, the oldest first:", ""}
	}
	if left > 0 {
		lines = append(lines, "[the oldest "+engine.CountNoun(left, "event is", "events are")+" left out; give minutes or an object]")
	}
	var references []operation.Reference
	for _, e := range list.Events {
		lines, references = append(lines, e.line()), append(references, e.Event)
	}
	// A cut keeps the newest events: they are the ones that users ask about most.
	text, cut := clip.Tail(redact.Text(strings.Join(lines, "\n")+"\n"+notRead(s.Unread, "events")), maxText, "give minutes or an object")
	return Result{Text: text, Truncated: cut || left > 0, Data: list, References: references}, nil
}

func lastOf(e Event) time.Time {
	if e.Last == nil {
		return time.Time{}
	}
	return *e.Last
}

func eventOf(e *corev1.Event) Event {
	count := max(e.Count, 1)
	if e.Series != nil {
		count = e.Series.Count
	}
	first := e.FirstTimestamp.Time
	if first.IsZero() {
		first = e.EventTime.Time
	}
	of := e.InvolvedObject
	group, _, grouped := strings.Cut(of.APIVersion, "/")
	if !grouped {
		group = ""
	}
	return Event{
		First: timePointer(first), Last: timePointer(engine.LastSeen(e).Time), Count: int(count), Type: e.Type, Reason: e.Reason,
		Object:  operation.Reference{Group: group, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, ResourceVersion: of.ResourceVersion},
		Message: redact.Text(table.Line(e.Message, maxMessage)),
		Event:   operation.Reference{Kind: "Event", Namespace: e.Namespace, Name: e.Name, ResourceVersion: e.ResourceVersion},
	}
}
