package alert

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func sample() notification {
	at := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	return notification{Version: "4", GroupKey: "g", Status: firing, Alerts: []alert{
		{Status: firing, Labels: map[string]string{"alertname": "A"}, Annotations: map[string]string{"value": "1"}, StartsAt: at},
		{Status: firing, Labels: map[string]string{"alertname": "B"}, StartsAt: at},
	}}
}

// What a repeat is, and what is news.
func TestDigest(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(n *notification)
		repeat bool
	}{
		"the same":      {func(*notification) {}, true},
		"another value": {func(n *notification) { n.Alerts[0].Annotations = map[string]string{"value": "2"} }, true},
		"another order": {func(n *notification) { n.Alerts[0], n.Alerts[1] = n.Alerts[1], n.Alerts[0] }, true},
		"another alert ends": {func(n *notification) {
			n.Alerts = append(n.Alerts, alert{Status: resolved, Labels: map[string]string{"alertname": "C"}})
		}, true},
		"one less":      {func(n *notification) { n.Alerts = n.Alerts[:1] }, false},
		"it fires anew": {func(n *notification) { n.Alerts[0].StartsAt = n.Alerts[0].StartsAt.Add(time.Hour) }, false},
		"another label": {func(n *notification) { n.Alerts[0].Labels = map[string]string{"alertname": "A", "pod": "x"} }, false},
		"all are over":  {func(n *notification) { n.Status, n.Alerts[0].Status, n.Alerts[1].Status = resolved, resolved, resolved }, false},
	} {
		want, err := sample().digest()
		if err != nil {
			t.Fatal(err)
		}
		n := sample()
		row.change(&n)
		got, err := n.digest()
		if err != nil || (string(got) == string(want)) != row.repeat {
			t.Errorf("%s: got a repeat %v, %v; want %v", name, string(got) == string(want), err, row.repeat)
		}
	}
}

// What is stored is redacted, within bounds, and has first what fires.
func TestKeep(t *testing.T) {
	t.Parallel()
	n := sample()
	n.Alerts[0].Status = resolved
	n.Alerts[1].Annotations = map[string]string{"password": "hunter2hunter2", "long": strings.Repeat("ä", maxText), "nul": "a\x00b"}
	for range maxKept {
		n.Alerts = append(n.Alerts, alert{Status: firing, Labels: map[string]string{"alertname": "C"}, StartsAt: n.Alerts[0].StartsAt})
	}
	k := n.keep()
	raw, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	if len(k.Alerts) != maxKept || k.Firing != maxKept+1 || k.Resolved != 1 || k.Alerts[0].Labels["alertname"] != "B" || strings.Contains(string(raw), "hunter2") || strings.Contains(string(raw), `\u0000`) {
		t.Errorf("got %d alerts, %d and %d, first %v: %s", len(k.Alerts), k.Firing, k.Resolved, k.Alerts[0], raw)
	}
	if got := len(k.Alerts[0].Annotations["long"]); got > maxText+len("…") {
		t.Errorf("got a value of %d bytes, want at most %d", got, maxText)
	}
}

func TestNamesIn(t *testing.T) {
	t.Parallel()
	got := namesIn(map[string]string{"pod": "p", "exported_pod": "q", "job": "scrape", "job_name": "backup", "severity": "a b"})
	for name, want := range map[string]string{"pod": "q", "job": "backup", "severity": ""} {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Whatever a notification holds, its text stays on its lines, inside of quotes.
func FuzzTell(f *testing.F) {
	f.Add(`{"version":"4","groupKey":"g","status":"firing","alerts":[{"status":"firing","labels":{"a":"b` + "`" + `\n- c"},"annotations":{"\u0007":"\r\n# x"},"startsAt":"2026-11-29T08:00:00Z"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		var n notification
		if json.Unmarshal([]byte(body), &n) != nil || n.check() != nil {
			return
		}
		told := n.keep().tell()
		for line := range strings.SplitSeq(told, "\n") {
			if strings.Count(line, "`")%2 != 0 {
				t.Errorf("a quote is open in %q", line)
			}
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != unicode.ReplacementChar }) {
				t.Errorf("%q has what cannot be printed", line)
			}
		}
		if most := 4 + 2*maxTold; strings.Count(told, "\n") > most {
			t.Errorf("got %d lines, want at most %d", strings.Count(told, "\n"), most)
		}
	})
}
