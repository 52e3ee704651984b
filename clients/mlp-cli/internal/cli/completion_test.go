package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestCompleteModels(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"registered_models":[{"name":"jpcp"},{"name":"j$(reboot)"},{"name":"j k"},{"name":"--json"},{"name":"j.p-c_p2"},{"name":"mack"}]}`)
	}))
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "TRACKING_URI": srv.URL}
	for line, want := range map[string]string{
		"predict j":    "J.P-C_P2\nJPCP\n",
		"predict ":     "J.P-C_P2\nJPCP\nMACK\n",
		"mod":          "models\nmodelrepo\n",
		"models ":      "list\ninfo\ndiff\nlineage\ncost\nhistory\nat\nrollback\n",
		"retrain --du": "--dummy\n",
		"--ver":        "--verbose\n--version\n",
	} {
		if r := runMLP(t, vars, "", append([]string{"__complete", "--"}, strings.Split(line, " ")...)...); r.out != want || r.code != 0 {
			t.Errorf("%q: exit %d, %q, want %q (%s)", line, r.code, r.out, want, r.err)
		}
	}
}

func completeLine(t *testing.T, vars map[string]string, words ...string) string {
	t.Helper()
	r := runMLP(t, vars, "", append([]string{"__complete", "--"}, words...)...)
	if r.code != 0 {
		t.Errorf("%q: exit %d, %s", words, r.code, r.err)
	}
	return r.out
}

func TestCompleteValuesOfOptions(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"registered_models":[{"name":"jpcp"},{"name":"mack"}]}`)
	}))
	t.Cleanup(srv.Close)
	file := filepath.Join(home, "config.toml")
	if err := os.WriteFile(file, []byte("[contexts.prod.urls]\ntracker = \"http://x\"\n[contexts.lab.urls]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"HOME": home, "PLATFORM_CONFIG": file, "TRACKING_URI": srv.URL}
	for line, want := range map[string]string{
		"predict M --alias ":                "Production\nCanary\nStaging\n",
		"predict M --alias p":               "Production\n",
		"predict M --alias=c":               "--alias=Canary\n", // zsh and fish complete the whole word
		"predict M --alias = c":             "Canary\n",         // bash the part behind the sign
		"predict M --alias =":               "Production\nCanary\nStaging\n",
		"-c ":                               "lab\nprod\n",
		"--context p":                       "prod\n",
		"-o ":                               "table\njson\nyaml\ncsv\n",
		"--output=y":                        "--output=yaml\n",
		"-o json predict M --alias S":       "Staging\n",
		"pipeline run --env ":               "dev\nstaging\nprod\n",
		"pipeline deploy -e s":              "staging\n",
		"pipeline run --model ":             "JPCP\nMACK\n",
		"audit -m j":                        "JPCP\n",
		"runs list --state run":             "RUNNING\n",
		"guarded-changes list --state p":    "pending\n",
		"alerts list --state ":              "resolved\nall\n",
		"stack logs --service t":            "tracker\n",
		"predict M --features ":             "",
		"predict M --alias Production --fe": "--features\n",
	} {
		if got := completeLine(t, vars, strings.Split(line, " ")...); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// Every option that takes one of a list offers that list, and nothing else.
func TestEveryListOfValuesIsOffered(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"HOME": t.TempDir(), "DOCKER_HOST": "unix:///nonexistent"}
	found := 0
	var walk func(c *cli.Command, path []string)
	walk = func(c *cli.Command, path []string) {
		for _, s := range c.Subcommands {
			walk(s, append(slices.Clone(path), s.Name))
		}
		for _, f := range c.Flags {
			s, ok := f.(*cli.StringFlag)
			if !ok || c.Hidden || path[0] == "auth" || path[0] == "stack" && s.Name != "service" { // a test must not start anything else that these do
				continue
			}
			words := slices.Clone(path)
			for _, name := range strings.Fields(c.ArgsUsage) {
				if strings.HasPrefix(name, "<") {
					words = append(words, "Xx1")
				}
			}
			r := runMLP(t, vars, "", append(words, "--dry-run", "--"+s.Name, "no-such-value")...)
			if strings.Contains(r.err, "unknown option") {
				r = runMLP(t, vars, "", append(words, "--"+s.Name, "no-such-value")...)
			}
			_, list, ok := strings.Cut(r.err, "--"+s.Name+" must be one of ")
			if !ok {
				continue
			}
			found++
			list, _, _ = strings.Cut(list, "; not ")
			want := strings.Fields(strings.ReplaceAll(list, ",", " "))
			if got := strings.Fields(completeLine(t, vars, append(slices.Clone(path), "--"+s.Name, "")...)); !slices.Equal(got, want) {
				t.Errorf("mlp %s --%s: offered %q, want %q", strings.Join(path, " "), s.Name, got, want)
			}
		}
	}
	for _, c := range newApp(&Env{Getenv: func(string) string { return "" }}).Commands {
		walk(c, []string{c.Name})
	}
	if found < 15 {
		t.Errorf("found %d options that take one of a list, want 15 or more", found)
	}
}
