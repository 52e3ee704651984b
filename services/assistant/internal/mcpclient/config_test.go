package mcpclient_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/mcpclient"
)

// load loads a file with this text.
func load(t *testing.T, text string, environment map[string]string) ([]mcpclient.Server, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "servers.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return mcpclient.Load(file, func(name string) (string, bool) {
		v, ok := environment[name]
		return v, ok
	})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := load(t, `
servers:
  - name: runbooks
    url: https://runbooks.example.org/mcp
    headers:
      authorization: {env: RUNBOOKS_TOKEN, prefix: "Bearer "}
      X-Team: shop
      X-Other: {file: `+secret+`}
    tools: [search_*, get_page, edit_page]
    reads: [get_page]
    writes: [edit_*]
    timeout: 5s
  - name: local
    command: /usr/local/bin/mcp-wiki
    args: [--stdio]
    env:
      WIKI_TOKEN: {env: RUNBOOKS_TOKEN}
`, map[string]string{"RUNBOOKS_TOKEN": "from-the-environment"})
	if err != nil || len(got) != 2 {
		t.Fatalf("got %d servers, %v; want 2", len(got), err)
	}
	first, second := got[0], got[1]
	for name, want := range map[string]string{"Authorization": "Bearer from-the-environment", "X-Team": "shop", "X-Other": "from-a-file"} {
		if v := first.Headers[name]; v.Reveal() != want {
			t.Errorf("the header %s is %q; want %q", name, v.Reveal(), want)
		}
	}
	if first.Timeout != 5*time.Second || second.Timeout != 20*time.Second {
		t.Errorf("the times are %s and %s; want 5s and the default of 20s", first.Timeout, second.Timeout)
	}
	if v := second.Env["WIKI_TOKEN"]; v.Reveal() != "from-the-environment" || second.Command != "/usr/local/bin/mcp-wiki" || len(second.Args) != 1 {
		t.Errorf("got %+v; want the command with its token", second)
	}
}

// Each fault of the file is a sentence, and all are reported together, without the values of secrets.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"an unknown member":        {"servers: [{name: a, url: http://h, urls: x}]", `there is no member "urls"`},
		"an unknown member on top": {"server: []", `there is no member "server"`},
		"nothing":                  {"", "1 to 16 servers"},
		"no YAML":                  {"servers: [", "did not find"},
		"two documents":            {"servers: [{name: a, url: http://h}]\n---\nservers: []", "one YAML document"},
		"a bad name":               {"servers: [{name: A_b, url: http://h}]", "the name must be"},
		"a long name":              {"servers: [{name: " + strings.Repeat("a", 33) + ", url: http://h}]", "the name must be"},
		"two of a name":            {"servers: [{name: a, url: http://h}, {name: a, url: http://i}]", "used twice"},
		"neither url nor command":  {"servers: [{name: a}]", "either url or command"},
		"both":                     {"servers: [{name: a, url: http://h, command: x}]", "either url or command"},
		"a url of a file":          {"servers: [{name: a, url: file:///x}]", "http or https"},
		"a url with a password":    {"servers: [{name: a, url: 'http://u:hunter2@h'}]", "without a user"},
		"args without a command":   {"servers: [{name: a, url: http://h, args: [x]}]", "for servers with a command"},
		"headers without a url":    {"servers: [{name: a, command: x, headers: {B: c}}]", "for servers with a url"},
		"no such variable":         {"servers: [{name: a, url: http://h, headers: {B: {env: NOT_THERE}}}]", "NOT_THERE is not set"},
		"no such file":             {"servers: [{name: a, url: http://h, headers: {B: {file: /no/such/file}}}]", "/no/such/file"},
		"two sources of a value":   {"servers: [{name: a, url: http://h, headers: {B: {file: /x, env: Y}}}]", "one of value, env and file"},
		"a value's unknown member": {"servers: [{name: a, url: http://h, headers: {B: {environment: Y}}}]", `no member "environment"`},
		"a header of the protocol": {"servers: [{name: a, url: http://h, headers: {mcp-session-id: x}}]", "the protocol sets this header"},
		"another host":             {"servers: [{name: a, url: http://h, headers: {host: x}}]", "the protocol sets this header"},
		"a header of two lines":    {"servers: [{name: a, url: http://h, headers: {B: \"x\\ny\"}}]", "cannot be sent"},
		"a bad header":             {"servers: [{name: a, url: http://h, headers: {'B c': x}}]", "no name of a header"},
		"a bad variable":           {"servers: [{name: a, command: x, env: {'B=c': x}}]", "cannot be an environment variable"},
		"a bad pattern":            {"servers: [{name: a, url: http://h, writes: ['[']}]", "no name of a tool"},
		"an empty pattern":         {"servers: [{name: a, url: http://h, tools: ['']}]", "no name of a tool"},
		"a read that writes":       {"servers: [{name: a, url: http://h, reads: [x], writes: [x]}]", "in reads and in writes"},
		"a time that is none":      {"servers: [{name: a, url: http://h, timeout: soon}]", "timeout must be"},
		"a time that is too long":  {"servers: [{name: a, url: http://h, timeout: 1h}]", "timeout must be"},
		"a time that is too short": {"servers: [{name: a, url: http://h, timeout: 1ms}]", "timeout must be"},
		"too many servers":         {"servers: [" + strings.Repeat("{name: a, url: http://h},", 17) + "]", "1 to 16 servers"},
	} {
		got, err := load(t, c.text, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %d servers, %v; want an error with %q", name, len(got), err, c.want)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "mcpclient.") {
			t.Errorf("%s: got %v; want no secret and no name of a type", name, err)
		}
	}
	_, err := load(t, "servers: [{name: A, url: ftp://h, timeout: soon}, {name: b}]", nil)
	for _, want := range []string{`server 1 ("A"): the name`, `server 1 ("A"): url must be`, `server 1 ("A"): timeout`, `server 2 ("b"): give either`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want all faults at once, also %q", err, want)
		}
	}
}
