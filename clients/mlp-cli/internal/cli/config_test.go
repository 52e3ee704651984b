package cli

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigPriority(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	vars := map[string]string{"HOME": home}
	value := func(key string, argv ...string) (string, string) {
		t.Helper()
		r := runMLP(t, vars, "", append(append([]string{"--json"}, argv...), "config", "show")...)
		if r.code != 0 {
			t.Fatalf("exit %d: %s; want r.code == 0", r.code, r.out)
		}
		var rows []struct {
			Key, Source string
			Value       *string
		}
		if err := json.Unmarshal([]byte(r.out), &rows); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if row.Key == key {
				if row.Value == nil {
					return "", row.Source
				}
				return *row.Value, row.Source
			}
		}
		t.Fatalf("no key %s in %s", key, r.out)
		return "", ""
	}
	want := func(key, wantValue, wantSource string, argv ...string) {
		t.Helper()
		if v, s := value(key, argv...); v != wantValue || s != wantSource {
			t.Fatalf("%s = %q from %q, want %q from %q", key, v, s, wantValue, wantSource)
		}
	}
	must := func(in string, argv ...string) {
		t.Helper()
		if r := runMLP(t, vars, in, argv...); r.code != 0 {
			t.Fatalf("%v: exit %d %s; want r.code == 0", argv, r.code, r.err)
		}
	}
	want("serving", "http://localhost:18001", "default")
	must("", "config", "set", "serving", "http://base:1/")
	want("serving", "http://base:1", "file")
	must("", "--context", "prod", "config", "set", "serving", "http://prod:1")
	want("serving", "http://prod:1", "context:prod", "--context", "prod")
	want("serving", "http://base:1", "file")
	must("", "config", "use", "prod")
	want("serving", "http://prod:1", "context:prod")
	vars["SERVING_URL"] = "http://env:1"
	want("serving", "http://env:1", "environment")

	must("s3cret-from-a-pipe\n", "config", "set", "control_plane_token")
	want("control_plane_token", "***", "file")
	path := filepath.Join(home, ".config", "platform", "config.toml")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v; want info.Mode().Perm() == 0o600", info.Mode(), err)
	}
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), "s3cret-from-a-pipe") {
		t.Fatalf(`the secret was not stored: %v; want strings.Contains(string(data), "s3cret-from-a-pipe")`, err)
	}
	must("", "config", "unset", "control_plane_token")
	want("control_plane_token", "", "default")
}

// A user who names a context and reaches another platform, because of a forgotten export, is warned: once, on standard
// error, and never beside a document.
func TestVariablesThatOverrideTheNamedContextAreTold(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := filepath.Join(home, "config.toml")
	const text = "[contexts.prod.urls]\nserving = \"http://prod:1\"\ncontrol_plane = \"http://prod:2\"\n[contexts.prod.auth]\ncontrol_plane_token = \"ours\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const told = "note: the environment overrides the context prod: CONTROL_PLANE_URL, CONTROL_PLANE_TOKEN\n"
	// The serving address says the same as the context; of the dashboard the context says nothing.
	exported := map[string]string{"CONTROL_PLANE_URL": "http://127.0.0.1:1", "CONTROL_PLANE_TOKEN": "theirs", "SERVING_URL": "http://prod:1/", "DASHBOARD_URL": "http://other:1"}
	for _, tc := range []struct {
		name, line, want string
		vars             map[string]string
	}{
		{"named", "--context prod config show", told, exported},
		{"named, quiet", "--quiet --context prod config show", "", exported},
		{"named, as a document", "--json --context prod config show", "", exported},
		{"named, as CSV", "--output csv --context prod config show", "", exported},
		{"named, nothing exported", "--context prod config show", "", nil},
		{"not named", "config show", "", exported},
	} {
		vars := maps.Clone(exported)
		if tc.vars == nil {
			vars = map[string]string{}
		}
		vars["HOME"], vars["PLATFORM_CONFIG"] = home, path
		got := runMLP(t, vars, "", strings.Fields(tc.line)...)
		if got.code != 0 || got.err != tc.want {
			t.Errorf("%s: got exit %d and %q, want 0 and %q", tc.name, got.code, got.err, tc.want)
		}
	}
	// status asks several services at once, each of which reads the configuration.
	vars := maps.Clone(exported)
	vars["HOME"], vars["PLATFORM_CONFIG"], vars["SERVING_URL"] = home, path, "http://127.0.0.1:1"
	if got := runMLP(t, vars, "", "--context", "prod", "status"); strings.Count(got.err, "note: ") != 1 {
		t.Errorf("got %q, want one note", got.err)
	}
}

func TestBrokenConfigNamesItsLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"syntax":      {"[urls]\nserving = \n", ":2:"},
		"unknown key": {"[urls]\nserving = \"http://x\"\n\n[nonsense]\na = 1\n", ":4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "c.toml")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			r := runMLP(t, map[string]string{"PLATFORM_CONFIG": path}, "", "config", "show")
			if r.code != 1 || !strings.Contains(r.err, path+tc.want) {
				t.Fatalf("exit %d: %s; want r.code == 1 && strings.Contains(r.err, path+tc.want)", r.code, r.err)
			}
		})
	}
}

// Without a home directory reading works and storing fails with the variable to set.
func TestNoHome(t *testing.T) {
	t.Parallel()
	if r := runMLP(t, nil, "", "config", "show"); r.code != 0 {
		t.Fatalf("exit %d: %s; want r.code == 0", r.code, r.err)
	}
	if r := runMLP(t, nil, "", "config", "set", "serving", "http://x"); r.code != 1 || !strings.Contains(r.err, "PLATFORM_CONFIG") {
		t.Fatalf(`exit %d: %s; want r.code == 1 && strings.Contains(r.err, "PLATFORM_CONFIG")`, r.code, r.err)
	}
}
