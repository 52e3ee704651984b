//go:build e2e

package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// walkTime limits one part of a walk: 31 pages, each checked by axe, on a busy machine.
const walkTime = 15 * time.Minute

// walk is the input of walk.cjs and sso.cjs.
type walk struct {
	Part         string `json:"part"` // a key of the script's parts
	Name         string `json:"name"` // of its screenshots
	URL          string `json:"url"`
	Scheme       string `json:"scheme"`
	Width        int    `json:"width"`
	Height       int    `json:"height"`
	Shots        string `json:"shots"`
	Chromium     string `json:"chromium"`
	Admin        string `json:"admin"`  // password
	Viewer       string `json:"viewer"` // password
	Model        string `json:"model,omitempty"`
	ControlPlane string `json:"control_plane,omitempty"`
	CIToken      string `json:"ci_token,omitempty"`
	Commit       string `json:"commit,omitempty"`
	File         string `json:"file,omitempty"`

	// Secrets must be nowhere in the browser but in the session's own entry.
	Secrets map[string]string `json:"secrets"`

	Provider     string            `json:"provider,omitempty"` // origin
	ProviderName string            `json:"provider_name,omitempty"`
	OTPSecrets   map[string]string `json:"otp_secrets,omitempty"`
	Typed        string            `json:"typed,omitempty"` // a secret for the configuration

	Gates   string   `json:"gates,omitempty"`   // address that stops and starts services
	Sources []string `json:"sources,omitempty"` // services to stop, as pages name them
}

// walked is one seeded platform for all parts: each only adds to it.
var walked struct {
	once sync.Once
	p    *harness.Platform
	dir  string
	url  string
}

func seededDashboard(t *testing.T) *harness.Platform {
	t.Helper()
	if p, ok := harness.Attached(); ok {
		walked.url = os.Getenv("DASHBOARD_URL")
		return p
	}
	walked.once.Do(func() {
		ports := harness.FreePorts(t, 2)
		p, dir := harness.NewShared(t, "DASHBOARD_ADDR="+ports[0], "DASHBOARD_TOOLS_ADDR="+ports[1])
		walked.dir, walked.url = dir, "http://"+ports[0]
		p.Start(t, startLimit)
		p.WaitOutput(t, "Next:", seedLimit, time.Now())
		walked.p = p
	})
	if walked.p == nil {
		t.Fatal("the shared platform did not start")
	}
	return walked.p
}

// playWalk runs one part of walk.cjs at the shared platform.
func playWalk(t *testing.T, w walk) {
	t.Helper()
	p := seededDashboard(t)
	w.URL = walked.url
	w.play(t, p, "walk.cjs")
}

// play runs one part of a script in a new Chromium.
func (w walk) play(t *testing.T, p *harness.Platform, script string) {
	t.Helper()
	root := harness.Root(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: run scripts/setup.sh e2e", err)
	}
	w.Chromium, w.Shots = chromium, filepath.Join(root, ".cache", "screenshots", "dashboard")
	w.Admin, w.Viewer = p.Secret(t, "dashboard_admin_password"), p.Secret(t, "dashboard_viewer_password")
	if w.Secrets, err = credentials(p); err != nil {
		t.Fatal(err)
	}
	if w.Scheme == "" {
		w.Scheme = "light"
	}
	if w.Width == 0 {
		w.Width = 1440
	}
	w.Height = 900
	told, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), walkTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join(root, "e2e", "dashboard", script))
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(root, ".cache", "browser", "node_modules"))
	cmd.Stdin = bytes.NewReader(told)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", script, w.Part, err, out)
	}
}

// searchWalked looks for the credentials of the shared platform in everything it wrote. Each tab has searched its
// browser.
func searchWalked() []string {
	secrets, err := credentials(walked.p)
	if err != nil {
		return []string{err.Error()}
	}
	places, err := leftBehind(walked.p)
	if err != nil {
		return []string{err.Error()}
	}
	return searchPlaces(places, secrets)
}

// Every page, in both themes and at three widths, as an admin: axe finds nothing, the console is silent, the policy is
// not violated, no request leaves the origin, and nothing is wider than the window.
func TestEveryPageInEveryLook(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1440, 1280, 390} {
			t.Run(scheme+"-"+map[int]string{1440: "1440", 1280: "1280", 390: "390"}[width], func(t *testing.T) {
				playWalk(t, walk{Part: "looks", Name: "page", Scheme: scheme, Width: width, Model: "JPCP"})
			})
		}
	}
}

// A wrong password is reported as text, a right one opens the requested page, and signing out ends the session.
func TestPasswordLoginAndLogout(t *testing.T) {
	playWalk(t, walk{Part: "login", Name: "login"})
}

// change commits an edit to the model repository, as a person would, for a notice by CI to name.
func change(t *testing.T, p *harness.Platform, model string) (commit, file string) {
	t.Helper()
	repo := p.Env["PLATFORM_MODELREPO"]
	all, err := filepath.Glob(filepath.Join(repo, "models", "*", "*", "*.yaml"))
	files := slices.DeleteFunc(all, func(file string) bool { return !strings.EqualFold(filepath.Base(filepath.Dir(file)), model) })
	if err != nil || len(files) == 0 {
		t.Fatalf("no definition of %s in %s: %v", model, repo, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], append(text, "# walked\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=Walker", "-c", "user.email=walker@example.org", "-c", "safe.directory=*"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("commit", "-qam", "Deeper trees for "+model)
	file, err = filepath.Rel(repo, files[0])
	if err != nil {
		t.Fatal(err)
	}
	return git("rev-parse", "HEAD"), file
}

// A change notice becomes an approval with its diff, an approval becomes training, and training a promotion: decided by
// an admin with the mouse, while a viewer's page shows each step without a reload.
func TestLoopByMouseWhileAViewerWatches(t *testing.T) {
	playLoop(t, "loop", "MACK")
}

// The same by keyboard alone.
func TestLoopByKeysAlone(t *testing.T) {
	playLoop(t, "keys", "MCBOUND")
}

func playLoop(t *testing.T, part, model string) {
	t.Helper()
	p := seededDashboard(t)
	commit, file := change(t, p, model)
	playWalk(t, walk{Part: part, Name: part, Model: model, ControlPlane: p.Env["CONTROL_PLANE_URL"], CIToken: p.Secret(t, "ci_token"), Commit: commit, File: file})
	history := harness.Want(t, http.StatusOK, http.MethodGet, p.Env["CONTROL_PLANE_URL"]+"/promotions?model="+model+"&state=promoted", p.Env["CONTROL_PLANE_TOKEN"], nil)
	if !strings.Contains(string(history.Body), `"version":"2"`) {
		t.Errorf("promotions of %s: %s; want version 2 promoted", model, history.Body)
	}
}

// Without the stream the badge shows polling and figures stay fresh; with it again the badge shows live.
func TestStreamCut(t *testing.T) {
	p := seededDashboard(t)
	playWalk(t, walk{Part: "cut", Name: "cut", Model: "JPCP", ControlPlane: p.Env["CONTROL_PLANE_URL"], CIToken: p.Secret(t, "ci_token"), Commit: strings.Repeat("c", 40), File: "models/x"})
}

// The assistant finds the cause, proposes one change, shows it before it requests approval, survives a reload, and
// carries it out once approved; the focus returns where it was.
func TestAssistantBesideThePage(t *testing.T) {
	playWalk(t, walk{Part: "assistant", Name: "assistant"})
}
