package testenv

import (
	"errors"
	"os"
	"testing"
)

func TestContainersAreReachedOnThisHost(t *testing.T) {
	for _, c := range []struct {
		name   string
		given  map[string]string
		reaper string
		host   string
	}{
		{"nothing said", nil, "true", "127.0.0.1"},
		{"an engine elsewhere", map[string]string{"DOCKER_HOST": "tcp://engine.example:2376"}, "true", ""},
		{"a socket of one's own", map[string]string{"DOCKER_HOST": "unix:///tmp/docker.sock"}, "true", "127.0.0.1"},
		{"all said", map[string]string{"TESTCONTAINERS_RYUK_DISABLED": "false", "TESTCONTAINERS_HOST_OVERRIDE": "10.0.0.7"}, "false", "10.0.0.7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"DOCKER_HOST", "TESTCONTAINERS_RYUK_DISABLED", "TESTCONTAINERS_HOST_OVERRIDE"} {
				t.Setenv(name, "") // restored at the end
				if err := os.Unsetenv(name); err != nil {
					t.Fatal(err)
				}
				if v, ok := c.given[name]; ok {
					t.Setenv(name, v)
				}
			}
			if err := setContainerDefaults(); err != nil {
				t.Fatal(err)
			}
			if got := os.Getenv("TESTCONTAINERS_RYUK_DISABLED"); got != c.reaper {
				t.Errorf("TESTCONTAINERS_RYUK_DISABLED is %q, want %q", got, c.reaper)
			}
			if got := os.Getenv("TESTCONTAINERS_HOST_OVERRIDE"); got != c.host {
				t.Errorf("TESTCONTAINERS_HOST_OVERRIDE is %q, want %q", got, c.host)
			}
		})
	}
}

func TestMode(t *testing.T) {
	notInstalled := errors.New("not installed")
	for _, c := range []struct {
		mode    string
		known   bool
		missing error
		reason  error // nil for a process
	}{
		{"", true, nil, nil},
		{"", true, notInstalled, notInstalled},
		{"containers", true, nil, errForced},
		{"containers", true, notInstalled, notInstalled},
		{"container", false, nil, nil},
	} {
		t.Setenv(modeVariable, c.mode)
		if err := checkMode(); (err == nil) != c.known {
			t.Errorf("mode %q: got %v, want known to be %v", c.mode, err, c.known)
		}
		if got := containerReason(c.missing); got != c.reason {
			t.Errorf("mode %q, binary missing %v: got reason %v, want %v", c.mode, c.missing, got, c.reason)
		}
	}
}
