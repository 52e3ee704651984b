package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadChecksKeys(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, fault string }{
		"other services' settings": {"[urls]\nassistant = \"http://a\"\nbus = \"http://b\"\n[auth]\nassistant_key = \"k\"\n", ""},
		"in a context too":         {"[contexts.prod.urls]\nbus = \"http://b\"\n[contexts.prod.auth]\nassistant_key = \"k\"\n", ""},
		"empty":                    {"", ""},
		"an editor of Windows":     {"\ufeff[urls]\r\nserving = \"http://a\"\r\n", ""},
		"Latin-1":                  {"[urls]\n# f\xfcr\n", ": line 2, column 4: not UTF-8"},
		"unknown address":          {"[urls]\nserving = \"http://a\"\nservign = \"http://b\"\n", ":3: unknown key urls.servign"},
		"unknown secret":           {"[auth]\npassword = \"x\"\n", ":2: unknown key auth.password"},
		"unknown in a context":     {"[urls]\n\n[contexts.prod.urls]\nnowhere = \"http://b\"\n", ":4: unknown key contexts.prod.urls.nowhere"},
		"unknown table":            {"active_context = \"\"\n[nonsense]\na = 1\n", ":2"},
		"an address is no number":  {"[urls]\nserving = 7\n", ":2"},
		"syntax":                   {"[urls\n", ":1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := writeConfig(t, tc.text)
			_, err := Load(path)
			if tc.fault == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			f := fault.From(err)
			if f == nil || f.Code != "config_broken" || f.Exit != fault.ExitRuntime || !strings.Contains(f.Message, path+tc.fault) {
				t.Fatalf("got %v, want %s", err, tc.fault)
			}
		})
	}
}

// Every key that can be set can be read back, at the base and in a context.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, "")
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Keys {
		for _, context := range []string{"", "prod"} {
			if err := f.Set(k, context, "http://host/"+k.Name+context); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v; want info.Mode().Perm() == 0o600", info.Mode(), err)
	}
	if f, err = Load(path); err != nil {
		t.Fatal(err)
	}
	none := func(string) string { return "" }
	for _, context := range []string{"", "prod"} {
		r, err := Resolve(f, context, none)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range Keys {
			if got := r.Get(k.Name); got != "http://host/"+k.Name+context {
				t.Errorf(`%s in context %q is %q; want got == "http://host/" + k.Name + context`, k.Name, context, got)
			}
		}
	}
	for _, k := range Keys {
		if !f.Unset(k, "prod") || f.Unset(k, "prod") {
			t.Errorf("%s: unset must tell whether it was there", k.Name)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	if _, err := Resolve(&File{}, "prod", none); fault.From(err) == nil || fault.From(err).Exit != fault.ExitUsage {
		t.Fatalf("unknown context: %v; want fault.From(err) != nil && fault.From(err).Exit == fault.ExitUsage", err)
	}
	_, err := Resolve(&File{}, "", func(k string) string {
		if k == "SERVING_URL" {
			return "localhost:18001"
		}
		return ""
	})
	if f := fault.From(err); f == nil || f.Code != "bad_url" || f.Exit != fault.ExitRuntime || !strings.Contains(f.Hint, "SERVING_URL") {
		t.Fatalf(`bad address: %v; want f != nil && f.Code == "bad_url" && f.Exit == fault.ExitRuntime && strings.Contains(f.Hint, "SERVING_URL")`, err)
	}
	for _, bad := range []string{"", "ftp://x", "http://", "http://user:pw@host", "http://a b"} {
		if CheckURL("serving", bad) == nil {
			t.Errorf("%q must be refused", bad)
		}
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	vars := map[string]string{}
	at := func() string { return Path(func(k string) string { return vars[k] }) }
	if at() != "" {
		t.Fatal("without a home there is no file")
	}
	vars["HOME"] = "/home/a"
	if at() != "/home/a/.config/platform/config.toml" {
		t.Fatal(at(), `want "/home/a/.config/platform/config.toml"`)
	}
	vars["PLATFORM_CONFIG"] = "/etc/p.toml"
	if at() != "/etc/p.toml" {
		t.Fatal(at(), `want "/etc/p.toml"`)
	}
}

func TestWrongTypesNameTheKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"active_context = 3":                   ":1: active_context must be a string; it has the type integer",
		"urls = 'x'":                           ":1: urls must be a table; it has the type string",
		"[urls]\nserving = 3":                  ":2: urls.serving must be a string; it has the type integer",
		"[urls]\nserving = [1]":                ":2: urls.serving must be a string; it has the type array",
		"[urls.serving]\nx = 1":                ":1: urls.serving must be a string; it has the type table",
		"[[urls]]\nserving = 'x'":              ":1: urls must be a table; it has the type array table",
		"contexts = 3":                         ":1: contexts must be a table; it has the type integer",
		"[contexts]\nprod = 4":                 ":2: contexts.prod must be a table; it has the type integer",
		"[contexts.prod.urls]\nserving = true": ":2: contexts.prod.urls.serving must be a string; it has the type boolean",
		"[contexts.prod.auth]\ncontrol_plane_token=1979-05-27": ":2: contexts.prod.auth.control_plane_token must be a string; it has the type local date",
		"[auth]\nassistant_key = {a = 1}":                      ":2: auth.assistant_key must be a string; it has the type inline table",
	} {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if want = "the configuration file is broken at " + path + want; err == nil || err.Error() != want {
			t.Errorf("%q\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// A file that is far too large, or opens ever more brackets, is refused and does not exhaust the process.
func TestOversizedFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, code string }{
		"too large":              {strings.Repeat("# nothing\n", maxFile/10+1), "config_unreadable"},
		"nested brackets":        {"a = " + strings.Repeat("[", maxFile-10), "config_broken"},
		"nested tables":          {"a = " + strings.Repeat("{a=", maxFile/4), "config_broken"},
		"a key of 100,000 parts": {strings.Repeat("a.", maxFile/2-10) + "a = 1", "config_broken"},
		"a value of 256 kB":      {"[urls]\nnowhere = '" + strings.Repeat("x", maxFile-100) + "'", "config_broken"},
	} {
		_, err := Load(writeConfig(t, tc.text))
		if f := fault.From(err); err == nil || f.Code != tc.code || len(f.Message) > 4<<10 {
			t.Errorf("%s: got %.300v; want a short %s", name, err, tc.code)
		}
	}
}
