package stream_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/stream"
)

var six = []string{"job.*", "drift.*", "alert.*", "deploy.*", "approval.*", "event.*"}

func TestChannelsAreExpandedAndChecked(t *testing.T) {
	t.Parallel()
	long := "job." + strings.Repeat("x", 60)
	for text, want := range map[string][]string{
		"":                                   six,
		"  ":                                 six,
		"*":                                  six,
		"job,*":                              six,
		"job":                                {"job.*"},
		"job.*":                              {"job.*"},
		"job,job.*, job":                     {"job.*"},
		"drift, job.started":                 {"drift.*", "job.started"},
		"*.state_changed":                    {"*.state_changed"},
		"a*":                                 {"a*.*"},
		"d*.*ed":                             {"d*.*ed"},
		"event.flag-changed":                 {"event.flag-changed"},
		long:                                 {long},
		strings.Repeat("job,", 19) + "drift": {"job.*", "drift.*"},

		"audit":                              nil,
		"audit.*":                            nil,
		"job,audit":                          nil,
		"assistant":                          nil,
		"x*":                                 nil,
		".":                                  nil,
		".started":                           nil,
		"job.":                               nil,
		"job.a.b":                            nil,
		"Job":                                nil,
		"job.started?":                       nil,
		"job started":                        nil,
		"jöb":                                nil,
		"job\x00":                            nil,
		"job,,drift":                         nil,
		",":                                  nil,
		long + "x":                           nil,
		strings.Repeat("job,", 20) + "drift": nil,
	} {
		got, _, err := stream.ParseChannels(text)
		if want == nil {
			if p := problem.From(err); err == nil || p.Status() != http.StatusUnprocessableEntity || p.Kind.Code != "validation_failed" || len(p.Errors) != 1 {
				t.Errorf("%q: %v, %v; want a 422 that names the parameter", text, got, err)
			}
			continue
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v, got differs from want:\n%s", text, err, diff)
		}
	}
}

func TestGlobsMatchEventNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		channels, event string
		want            bool
	}{
		{"job", "job.started", true},
		{"job", "drift.reset", false},
		{"job.started", "job.started", true},
		{"job.started", "job.started_late", false},
		{"job.s*", "job.state_changed", true},
		{"job.*ed", "job.failed", true},
		{"job.*ed", "job.lost", false},
		{"job.*a*e*", "job.state_changed", true},
		{"job.**", "job.lost", true},
		{"*.re*", "drift.reset", true},
		{"*.re*", "job.completed", false},
		{"d*", "deploy.promoted", true},
		{"d*", "alert.acked", false},
		{"alert,job.lost", "job.lost", true},
		{"job.*a*a*a*a*a*a*a*a*b", "job.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
	} {
		_, matches, err := stream.ParseChannels(c.channels)
		if err != nil {
			t.Fatal(err)
		}
		namespace, name, _ := strings.Cut(c.event, ".")
		if got := matches(namespace, name); got != c.want {
			t.Errorf("%s matches %s: %t, want %t", c.channels, c.event, got, c.want)
		}
	}
}

// Whatever the text: a 422, or at most 20 times six channels that mean the same when read again, and none
// beyond the namespaces.
func FuzzChannels(f *testing.F) {
	for _, text := range []string{"", "*", "job", "job.*,drift.s*d", "a*.b*", "audit.*", ",", "job.\x00", strings.Repeat("*,", 30)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		channels, matches, err := stream.ParseChannels(text)
		if err != nil {
			if p := problem.From(err); p.Status() != http.StatusUnprocessableEntity {
				t.Fatalf("%q: status %d, want 422", text, p.Status())
			}
			return
		}
		again, _, err := stream.ParseChannels(strings.Join(channels, ","))
		if len(channels) <= 20 && (err != nil || !slices.Equal(again, channels)) {
			t.Fatalf("%q is %q, which is %q, %v; want the same", text, channels, again, err)
		}
		if len(channels) == 0 || len(channels) > 20+len(stream.Namespaces) {
			t.Fatalf("%q: %d channels", text, len(channels))
		}
		if matches("audit", "recorded") && !strings.Contains(text, "*") {
			t.Fatalf("%q matches the audit", text)
		}
		for _, c := range channels {
			if len(c) > 64+2 || strings.ContainsAny(c, "\r\n\x00\", ") {
				t.Fatalf("%q: channel %q", text, c)
			}
		}
	})
}
