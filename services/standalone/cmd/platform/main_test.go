package main

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
)

// probeServer is ready except under the addresses given.
func probeServer(t *testing.T, unready ...string) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, path := range unready {
			if r.URL.Path == path {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// runningPlatform is a data directory held by a platform whose servers are all at one address.
func runningPlatform(t *testing.T, url string) string {
	t.Helper()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	addresses := map[string]string{}
	for _, key := range []string{"control_plane", "inference", "tracker", "orchestrator", "evidence_api", "assistant", "bus", "dashboard"} {
		addresses[key] = url + "/" + key
	}
	if err := dir.WriteRuntime(datadir.Runtime{PID: os.Getpid(), Addresses: addresses}); err != nil {
		t.Fatal(err)
	}
	return dir.Path()
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	ready := probeServer(t)
	unready := probeServer(t, "/inference/readyz", "/orchestrator/health")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	nobody := "http://" + l.Addr().String()
	empty := t.TempDir()
	synopsis := "usage: platform [serve | env | password [viewer] | status [--json] | doctor [--json] | stop | backup FILE | restore FILE | health [URL] | version | help]\n"
	for name, c := range map[string]struct {
		args           string
		dir            string
		code           int
		stdout, stderr string
	}{
		"unknown command":        {"start", empty, 2, "", `platform: unknown arguments "start"; ` + synopsis},
		"unknown option":         {"status --yaml", empty, 2, "", `platform: unknown arguments "status --yaml"; ` + synopsis},
		"one argument too many":  {"stop now", empty, 2, "", `platform: unknown arguments "stop now"; ` + synopsis},
		"two URLs":               {"health a b", empty, 2, "", `platform: unknown arguments "health a b"; ` + synopsis},
		"not a URL":              {"health localhost:1", empty, 2, "", `platform: "localhost:1" is not an http or https URL` + "\n"},
		"help":                   {"--help", empty, 0, usage, ""},
		"version":                {"version", empty, 0, "platform dev\n", ""},
		"nothing to stop":        {"stop", empty, 1, "", "platform: no platform runs in " + empty + " (PLATFORM_DATA_DIR names another directory)\n"},
		"health of nothing":      {"health", empty, 1, "", "platform: no platform runs in " + empty + " (PLATFORM_DATA_DIR names another directory)\n"},
		"healthy":                {"health", runningPlatform(t, ready.URL), 0, "ok\n", ""},
		"one service by its URL": {"health " + ready.URL, empty, 0, "ok\n", ""},
		"one service, nobody there": {"health " + nobody, empty, 1, "",
			"platform: health check failed: Get \"" + nobody + "/readyz\": dial tcp " + l.Addr().String() + ": connect: connection refused\n"},
		"each unready service": {"health", runningPlatform(t, unready.URL), 1, "",
			"platform: orchestrator: " + unready.URL + "/orchestrator/health answered 503\ninference: " + unready.URL + "/inference/readyz answered 503\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := runCommand(t.Context(), strings.Fields(c.args), []string{"PLATFORM_DATA_DIR=" + c.dir}, &stdout, &stderr)
			if code != c.code || stdout.String() != c.stdout || stderr.String() != c.stderr {
				t.Errorf("exit %d, stdout %q, stderr %q\nwant %d, %q, %q; want code == c.code && stdout.String() == c.stdout && stderr.String() == c.stderr", code, stdout.String(), stderr.String(), c.code, c.stdout, c.stderr)
			}
		})
	}
}
