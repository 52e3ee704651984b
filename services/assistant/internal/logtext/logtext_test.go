package logtext_test

import (
	"slices"
	"strings"
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

// TestSeverityOfALine: a zero count in a line does not hide a problem in the rest of it.
func TestSeverityOfALine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"FATAL kafka-0 failed to elect a leader":                                      true,
		"ERROR worker 0 failed":                                                       true,
		"ERROR: 0 of 3 brokers reachable":                                             true,
		`level=error msg="connection refused" failed=0`:                               true,
		"kafka-0 errors on partition 3":                                               true,
		"E0102 10:00:00.123456       1 reflector.go:1] list of pods":                  true,
		"2026-01-02T10:00:00.000000000Z F0102 10:00:00.1 1 main.go:1] ok":             true,
		"connect ECONNREFUSED 10.0.0.1:5432":                                          true,
		"read ETIMEDOUT":                                                              true,
		"too many errors, giving up":                                                  true,
		"can't open the store":                                                        true,
		"error=0x17 from the driver":                                                  true,
		`{"op":"Orders","ms":812,"warn":"slow resolver Order.items n+1 queries=412"}`: true,
		`level=error msg="could not save" body="hello"`:                               true,
		`level=info msg="connection refused by db"`:                                   true,
		"3 done, 0 errors":                                                            false,
		"sync finished (no failures)":                                                 false,
		"done=3 failed=0":                                                             false,
		"done=3 errors: 0, skipped=1":                                                 false,
		`{"msg":"served","error":null,"status":200}`:                                  false,
		`{"msg":"served","errors":[],"error":""}`:                                     false,
		`{"msg":"served","error":"none","err":"OK"}`:                                  false,
		`{"msg":"served","fatal":"bind: address already in use"}`:                     true,
		"level=info msg=served err=<nil>":                                             false,
		"I0102 10:00:00.123456       1 main.go:1] started":                            false,
	} {
		if groups, _ := logtext.Telling([]logtext.Source{{Text: line}}); len(groups) > 0 != want {
			t.Errorf("%q tells of trouble: %t; want %t", line, len(groups) > 0, want)
		}
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

// Ordinary words of a line are not hosts.
func TestHostsNeedAPlace(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]logtext.Host{
		"failed to write to cache: permission denied":                     nil,
		"dial tcp: lookup db on 10.96.0.10:53: no such host":              {{Name: "10.96.0.10", Port: "53"}},
		"lookup db: no such host":                                         {{Name: "db"}},
		`connection to server at "orders" failed`:                         {{Name: "orders"}},
		"cannot reach postgres://app@orders/shop, queue search is stuck":  {{Name: "orders"}},
		"error connecting to cache, no search results for account report": {{Name: "cache"}},
	} {
		got := logtext.Hosts(line)
		for _, h := range want {
			if !slices.Contains(got, h) {
				t.Errorf("%q names %v; want %v too", line, got, h)
			}
		}
		for _, word := range []string{"permission", "search", "queue", "account", "report", "write"} {
			if slices.Contains(got, logtext.Host{Name: word}) || len(want) == 0 && len(got) > 0 {
				t.Errorf("%q names %v; want no %s", line, got, word)
			}
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for _, d := range logtext.Durations([]logtext.Source{{Text: "GET / took 20ms\nretrying in 30s\ntimed out after 40s\nGET / took 1.5s\nduration=300 ms\nport 8080\nLOG:  duration: 91204.5 ms  execute x\n{\"took\":\"2.31s\"}\n"}}) {
		got = append(got, d.Took)
	}
	if want := []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 1500 * time.Millisecond, 2310 * time.Millisecond, 91204500 * time.Microsecond}; !slices.Equal(got, want) {
		t.Errorf("%v; want %v", got, want)
	}
}

// Failed attempts at a start are over once the program reports success, and not before.
func TestAttemptsThatSucceededAreOver(t *testing.T) {
	t.Parallel()
	const tries = "INFO starting\nWARN database not reachable yet: connection refused (attempt 1 of 10)\nWARN database not reachable yet: connection refused (attempt 2 of 10)\n"
	served := strings.Repeat("INFO GET / 200 4ms\n", 6)
	for text, over := range map[string]bool{
		tries + "INFO connected to database on attempt 3\n" + served: true,
		tries + served: false,
		tries + "INFO not connected to database\n" + served:                                                                         false,
		tries + "INFO connected to database on attempt 3\n":                                                                         false,
		strings.ReplaceAll(tries, "WARN", "ERROR") + "INFO connected to database\n" + served:                                        false,
		tries + "INFO connected to database\n" + served + "WARN database not reachable yet: connection refused (attempt 1 of 10)\n": false,
	} {
		groups, _ := logtext.Telling([]logtext.Source{{Pod: "a", Text: text}})
		if len(groups) != 1 || groups[0].Over != over {
			t.Errorf("%q: %+v; want one group with Over == %v", text, groups, over)
		}
	}
	two, _ := logtext.Telling([]logtext.Source{{Pod: "a", Text: tries + "INFO connected to database\n" + served}, {Pod: "b", Text: tries + served}})
	if len(two) != 1 || two[0].Over {
		t.Errorf("%+v; want one group that is not over in the second log", two)
	}
}
