package main

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/evidence-api/internal/evidenceapitest"
)

func TestVerbsAndExitCodes(t *testing.T) {
	t.Parallel()
	tower := evidenceapitest.Start(t, evidenceapitest.NoStore)
	_, port, err := net.SplitHostPort(tower.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		args, environ  []string
		code           int
		stdout, stderr string // a part of each
	}{
		{"version", []string{"version"}, nil, 0, "evidence-api dev\n", ""},
		{"help", []string{"--help"}, nil, 0, "usage: evidence-api", ""},
		{"unknown verb", []string{"migrat"}, nil, 2, "", `unknown arguments "migrat"`},
		{"migrate", []string{"migrate"}, []string{"SVC_PRODUCT_SPINE_STORE=" + filepath.Join(t.TempDir(), "spine.sqlite3")}, 0, "", ""},
		{"migrate without a store", []string{"migrate"}, nil, 2, "", "SVC_PRODUCT_SPINE_STORE is not set"},
		{"argument too many", []string{"serve", "now"}, nil, 2, "", `unknown arguments "serve now"`},
		{"two URLs", []string{"health", "a", "b"}, nil, 2, "", `unknown arguments "health a b"`},
		{"health of a URL", []string{"health", "http://" + tower.Addr}, nil, 0, "ok\n", ""},
		{"health of the configured port", []string{"health"}, []string{"SVC_CONTROL_TOWER_PORT=" + port}, 0, "ok\n", ""},
		{"health of a path that needs a token", []string{"health", "http://" + tower.Addr + "/metrics"}, nil, 1, "", "answered 403"},
		{"health where nothing listens", []string{"health", "http://127.0.0.1:1"}, nil, 1, "", "health check failed"},
		{"health of no URL", []string{"health", "localhost"}, nil, 2, "", "is not an http or https URL"},
		{"refused configuration", nil, []string{"SVC_CONTROL_TOWER_PORT=x"}, 2, "", "SVC_CONTROL_TOWER_PORT must be an integer"},
		{"port taken", []string{"serve"}, []string{"SVC_CONTROL_TOWER_PORT=" + port}, 2, "", "error: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			if code := runCommand(c.args, c.environ, &stdout, &stderr); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, out := range []struct {
				name, got, want string
			}{{"stdout", stdout.String(), c.stdout}, {"stderr", stderr.String(), c.stderr}} {
				if !strings.Contains(out.got, out.want) || out.want == "" && out.got != "" {
					t.Errorf("%s: got %q, want %q", out.name, out.got, out.want)
				}
			}
		})
	}
}
