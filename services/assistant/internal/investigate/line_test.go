package investigate_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/investigate"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// watchLists watches a list whose reads return these results in turn, then the last one.
func watchLists(t *testing.T, line string, lists ...turn.Output) string {
	t.Helper()
	var n atomic.Int32
	b := &tools{run: func(context.Context, operation.Operation) (turn.Output, error) {
		return lists[min(int(n.Add(1)), len(lists))-1], nil
	}}
	k := &sink{}
	in := turn.Turn{Session: "s-1", Number: 1, Scope: "shop", Query: line, Who: event.Who{Principal: "ann", Role: guard.Admin}}
	if _, err := investigate.New(investigate.Config{WatchLimit: 1500 * time.Millisecond}).Investigate(t.Context(), in, b, k); err != nil {
		t.Fatal(err)
	}
	return k.text.String()
}

// TestWatch: values that change with time are no change, rows of two namespaces are two, and a row outside the part
// that is shown or read is not gone.
func TestWatch(t *testing.T) {
	t.Parallel()
	list := func(text string) turn.Output { return turn.Output{Text: text, Whole: text} }
	short, long := list("NAME   READY   AGE\na      1/1     5s\n"), list("NAME   READY   AGE\na      1/1     6s\nb      1/1     9m\n")
	long.Text, long.Truncated = short.Text+"[1 of 2 rows shown]\n", true
	part := short
	part.WholeTruncated = true
	for _, row := range []struct {
		name, line string
		lists      []turn.Output
		must, not  []string
	}{
		{"unchanged", "kubectl get pods -w", []turn.Output{
			list("NAME   READY   STATUS    RESTARTS     AGE   NODE\na      1/1     Running   3 (5m ago)   59m   n1\n"),
			list("NAME   READY   STATUS    RESTARTS     AGE   NODE\na      1/1     Running   3 (6m ago)   60m   n1\n"),
		}, []string{"Nothing changed"}, []string{"Changes in the "}},
		{"every namespace", "kubectl get pods -A -w", []turn.Output{
			list("NAMESPACE   NAME   READY   AGE\nshop        a      1/1     5s\nshop        b      1/1     5s\n"),
			list("NAMESPACE   NAME   READY   AGE\nshop        a      0/1     6s\nshop        b      1/1     6s\n"),
		}, []string{"Changes in the ", "    shop        a      0/1     6s\n\n"}, []string{"Nothing changed", "(gone)"}},
		{"gone", "kubectl get pods -w", []turn.Output{list(long.Whole), short}, []string{"    b  1/1  (gone)"}, nil},
		{"outside of what is shown", "kubectl get pods -w", []turn.Output{list(long.Whole), long}, []string{"Nothing changed"}, []string{"(gone)"}},
		{"outside of what is read", "kubectl get pods -w", []turn.Output{list(long.Whole), part}, []string{"Nothing changed", "too long to read completely"}, []string{"(gone)"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			text := watchLists(t, row.line, row.lists...)
			for _, want := range row.must {
				if !strings.Contains(text, want) {
					t.Errorf("the answer has no %q:\n%s", want, text)
				}
			}
			for _, not := range row.not {
				if strings.Contains(text, not) {
					t.Errorf("the answer has %q:\n%s", not, text)
				}
			}
		})
	}
}

// TestSecretLinesShowNoValue: whichever way a value is written, the answer has only the names.
func TestSecretLinesShowNoValue(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"kubectl create secret docker-registry pull --docker-username=bob --docker-password S3cret -n shop": "    kubectl create secret docker-registry pull --docker-username=VALUE --docker-password=VALUE -n shop",
		`kubectl create secret generic db --from-literal=password="S3cret horse S3cret"`:                    "    kubectl create secret generic db --from-literal=password=VALUE",
		`kubectl create secret generic db --from-literal password=S3cret --dry-run=client`:                  "    kubectl create secret generic db --from-literal=password=VALUE --dry-run=client",
		`kubectl create secret generic db --from-literal='S3cret'`:                                          "    kubectl create secret generic db --from-literal=KEY=VALUE",
		`kubectl create secret generic db --from-literal=password="S3cret`:                                  "    kubectl create secret generic NAME --from-literal=KEY=VALUE",
		`kubectl create -n shop secret generic db --from-literal=password=S3cret`:                           "    kubectl create secret generic db -n shop --from-literal=password=VALUE",
	} {
		a := askOnce(t, &tools{}, "shop", line)
		if !strings.HasSuffix(strings.TrimSpace(a.text), want) || strings.Contains(a.text, "S3cret") || strings.Contains(a.text, "horse") || len(a.write) > 0 {
			t.Errorf("%s gives:\n%s\nwant in it, and no value:\n%s", line, a.text, want)
		}
	}
}

// TestFiltersSayWhatTheyCount: a count of a part is labelled as such, and counting nothing gives zero.
func TestFiltersSayWhatTheyCount(t *testing.T) {
	t.Parallel()
	const cut = "was truncated before filtering"
	part := turn.Output{Text: "a\n[1 of 2]\n", Whole: "a\n", Truncated: true, WholeTruncated: true}
	for _, row := range []struct {
		out  turn.Output
		want string
		cut  bool
	}{
		{part, "    1\n", true},
		{turn.Output{Text: "There are no pods in namespace shop.\n", Empty: true}, "    0\n", false},
		{turn.Output{Text: "a\n[1 of 2]\n", Whole: "a\nb\n", Truncated: true}, "    2\n", false},
	} {
		b := &tools{run: func(ctx context.Context, _ operation.Operation) (turn.Output, error) {
			if !turn.WantsWholeLog(ctx) {
				t.Error("filters do not ask for the whole log")
			}
			return row.out, nil
		}}
		a := askOnce(t, b, "shop", "kubectl get pods | wc -l")
		if !strings.Contains(a.text+"\n", row.want) || strings.Contains(a.text, cut) != row.cut {
			t.Errorf("%+v gives:\n%s\nwant %q, and %t that it was cut", row.out, a.text, row.want, row.cut)
		}
	}
	live := liveTools(t)
	for line, want := range map[string]string{
		"kubectl get pods -n shop -l app=nothing | wc -l":      "    0",
		"kubectl get pods -n shop -l app=cart -o name | wc -l": "    2",
	} {
		if a := askOnce(t, live, "shop", line); !strings.HasSuffix(strings.TrimRight(a.text, "\n"), want) {
			t.Errorf("%s gives:\n%s\nwant %s", line, a.text, want)
		}
	}
}
