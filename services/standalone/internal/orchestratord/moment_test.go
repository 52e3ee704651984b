package orchestratord

import (
	"encoding/json"
	"testing"
	"time"
)

func TestMomentsAsClientsWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"2026-11-28T22:22:42Z"`:                  "2026-11-28T22:22:42Z",
		`"2026-11-28 22:22:42.366976+00:00"`:      "2026-11-28T22:22:42.366976Z",
		`"2026-11-28T23:22:42.000001+01:00"`:      "2026-11-28T22:22:42.000001Z",
		`"2026-11-28 22:22:42"`:                   "2026-11-28T22:22:42Z",
		`"2026-11-28"`:                            "",
		`"yesterday"`:                             "",
		`5`:                                       "",
		`"2026-11-28T22:22:42.1234567890123456Z"`: "2026-11-28T22:22:42.123456789Z",
	} {
		var m moment
		err := json.Unmarshal([]byte(text), &m)
		if got := m.time().Format(time.RFC3339Nano); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %s, %v; want %q", text, got, err, want)
		}
	}
}

// FuzzMoment: the result of parsing is a time that is formatted as the interface formats it.
func FuzzMoment(f *testing.F) {
	f.Add(`"2026-11-28 22:22:42.366976+00:00"`)
	f.Add(`"2026-11-28T22:22:42Z"`)
	f.Fuzz(func(t *testing.T, text string) {
		var m moment
		if json.Unmarshal([]byte(text), &m) != nil {
			return
		}
		var again moment
		if err := json.Unmarshal([]byte(`"`+m.time().Format(time.RFC3339Nano)+`"`), &again); err != nil || !again.time().Equal(*m.time()) {
			t.Fatalf("%s: %v read back as %v, %v", text, m.time(), again.time(), err)
		}
	})
}
