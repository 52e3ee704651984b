package logtext_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
)

func TestTelling(t *testing.T) {
	t.Parallel()
	groups, lines := logtext.Telling([]logtext.Source{
		{Pod: "a", Text: "2026-01-02T10:00:00Z INFO request 17 took 20ms\n2026-01-02T10:00:01Z ERROR dial tcp 10.0.0.7:5432: connect: connection refused\n\n2026-01-02T10:00:09Z ERROR dial tcp 10.0.0.8:5432: connect: connection refused\n"},
		{Pod: "b", Text: "0 errors, 3 done\nWARN retrying in 3s\n2026-01-02 10:00:05 ERROR dial tcp 10.0.0.7:5432: connect: connection refused\nfatal: no space left on device: /data/x\n"},
	})
	if lines != 7 || len(groups) != 3 {
		t.Fatalf("%d lines, %d groups %+v; want 7 and 3", lines, len(groups), groups)
	}
	if groups[0].Line != "fatal: no space left on device: /data/x" {
		t.Errorf("first is %q; want the gravest", groups[0].Line)
	}
	refused := groups[1]
	if refused.Count != 3 || refused.Before != "2026-01-02T10:00:00Z INFO request 17 took 20ms" || !slices.Equal(refused.Pods, []string{"a", "b"}) || refused.Last.Sub(refused.First) != 8*time.Second {
		t.Errorf("%+v; want 3 lines of both pods, 8 s apart, after a request", refused)
	}
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"10:00:00.123 request 17 took 20ms", "11:59:59.9 request 18 took 3000.5ms"},
		{"job 3f2c9a1e-1111-2222-3333-444455556666 failed", "job 00000000-aaaa-bbbb-cccc-ddddeeeeffff failed"},
		{"at 0x7ffe12 in worker-3", "at 0x1 in worker-12"},
	} {
		if a, b := logtext.Template(pair[0]), logtext.Template(pair[1]); a != b {
			t.Errorf("%q and %q; want one template", a, b)
		}
	}
	if a, b := logtext.Template("table orders is locked"), logtext.Template("table users is locked"); a == b {
		t.Errorf("%q for two tables; want two templates", a)
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]logtext.Host{
		"dial tcp: lookup db.shop.svc.cluster.local: no such host":   {Name: "db.shop.svc.cluster.local"},
		"could not connect to redis:6379":                            {Name: "redis", Port: "6379"},
		`Get "http://billing.crm:8080/v1/x": context deadline`:       {Name: "billing.crm", Port: "8080"},
		"2026-01-02T10:00:00Z connect to 10.96.0.8:80: i/o timeout":  {Name: "10.96.0.8", Port: "80"},
		"FATAL: password authentication failed (host=PG-main, db=x)": {Name: "pg-main"},
	} {
		if got := logtext.Hosts(line); !slices.Contains(got, want) {
			t.Errorf("%q names %v; want %v", line, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	got := logtext.Durations([]logtext.Source{{Text: "GET / took 20ms\nGET / took 1.5s\nduration=300 ms\nport 8080\n"}})
	if want := []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 1500 * time.Millisecond}; !slices.Equal(got, want) {
		t.Errorf("%v; want %v", got, want)
	}
}
