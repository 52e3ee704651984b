package accesslog

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

func TestLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	New(&out).Write(Entry{RequestID: "a", Method: "GET", Path: "/x", Status: 200, Bytes: 3,
		Took: 1234567 * time.Nanosecond, At: time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)})
	const want = `{"duration_ms":1.235,"event":"http_request","method":"GET","occurred_at":"2026-01-02T03:04:05.678Z","path":"/x",` +
		`"request_id":"a","response_bytes":3,"service":"svc-control-tower","status":200}` + "\n"
	if out.String() != want {
		t.Errorf("%s, want %s", out.String(), want)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestFaultsAndNothing(t *testing.T) {
	t.Parallel()
	New(broken{}).Write(Entry{})
	New(nil).Write(Entry{})
}

// FuzzLine: whatever the caller sends makes one line of strict JSON within bounds.
func FuzzLine(f *testing.F) {
	f.Add("GET", "/\xff\n")
	f.Add(strings.Repeat("é", 40), strings.Repeat("\xff", 3000))
	f.Fuzz(func(t *testing.T, method, path string) {
		var out bytes.Buffer
		New(&out).Write(Entry{Method: method, Path: path})
		v, err := canon.Parse(bytes.TrimSuffix(out.Bytes(), []byte("\n")), canon.ObjectRoot())
		if err != nil || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
			t.Fatalf("%v: %q; want bytes.Count(out.Bytes(), []byte(\"\\n\")) == 1", err, out.Bytes())
		}
		for key, most := range map[string]int{"method": maxMethod, "path": maxPath} {
			if s, _ := v.(*canon.Object).Get(key); len(s.(string)) > most {
				t.Fatalf("%s has %d bytes; want len(s.(string)) <= most", key, len(s.(string)))
			}
		}
	})
}
