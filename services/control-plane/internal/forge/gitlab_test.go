package forge_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
)

const token = "glpat-0123456789-secret"

var (
	sha1 = strings.Repeat("1a", 20)
	sha2 = strings.Repeat("2b", 20)
)

// openGitLab serves the routes of GitLab's REST interface that are used, as its documentation describes them.
func openGitLab(t *testing.T, h http.HandlerFunc) *forge.GitLab {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return forge.OpenGitLab(s.URL+"/", "group/models", token, 20*time.Second)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func serveProject(t *testing.T) http.HandlerFunc {
	commits := map[string]map[string]any{
		sha1: {"id": sha1, "author_name": "Ada", "message": "first\n", "parent_ids": []string{}},
		sha2: {"id": sha2, "author_name": "Bob", "message": "second\n", "parent_ids": []string{sha1}},
	}
	diffs := []map[string]any{
		{"old_path": "a", "new_path": "a", "diff": "@@ -1 +1,2 @@\n-x\n+y\n+z\n"},
		{"old_path": "b", "new_path": "b", "new_file": true, "diff": "Binary files /dev/null and b/b differ\n"},
		{"old_path": "c", "new_path": "d", "renamed_file": true, "diff": ""},
		{"old_path": "e", "new_path": "e", "deleted_file": true, "diff": "@@ -1 +0,0 @@\n-x\n"},
		{"old_path": "f", "new_path": "f", "too_large": true, "diff": ""},
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("PRIVATE-TOKEN") != token || r.Header.Get("Authorization") != "" {
			t.Errorf(`credentials %v; want r.Header.Get("PRIVATE-TOKEN") == token && r.Header.Get("Authorization") == ""`, r.Header)
		}
		const base = "/api/v4/projects/group%2Fmodels/repository"
		path, ok := strings.CutPrefix(r.URL.EscapedPath(), base)
		q := r.URL.Query()
		switch {
		case !ok:
			http.NotFound(w, r)
		case path == "/commits" && q.Get("ref_name") == "main" && q.Get("per_page") == "1":
			writeJSON(w, []any{commits[sha2]})
		case path == "/commits" && q.Get("ref_name") == "empty":
			writeJSON(w, []any{})
		case path == "/commits/"+sha1+"/diff":
			writeJSON(w, []any{map[string]any{"old_path": "a", "new_path": "a", "new_file": true, "diff": "@@ -0,0 +1 @@\n+x\n"}})
		case strings.HasPrefix(path, "/commits/"):
			for id, c := range commits {
				if strings.HasPrefix(id, strings.TrimPrefix(path, "/commits/")) {
					writeJSON(w, c)
					return
				}
			}
			w.WriteHeader(http.StatusNotFound)
		case path == "/compare" && q.Get("from") == sha1 && q.Get("to") == sha2 && q.Get("straight") == "true":
			writeJSON(w, map[string]any{"diffs": diffs, "compare_timeout": false})
		default:
			w.WriteHeader(http.StatusNotFound)
			writeJSON(w, map[string]any{"message": "404 Not found"})
		}
	}
}

func TestGitLab(t *testing.T) {
	t.Parallel()
	g := openGitLab(t, serveProject(t))
	if c := headOf(t, g, "main"); c != (forge.Commit{SHA: sha2, Author: "Bob", Message: "second\n"}) {
		t.Errorf("%+v; want c == (forge.Commit{SHA: sha2, Author: \"Bob\", Message: \"second\\n\"})", c)
	}
	if c := headOf(t, g, "empty"); c.SHA != "" {
		t.Errorf(`%+v; want c.SHA == ""`, c)
	}
	if _, err := g.Head(t.Context(), "no/such"); !errors.Is(err, forge.ErrNoBranch) {
		t.Error(err, "want errors.Is(err, forge.ErrNoBranch)")
	}
	files, err := g.Files(t.Context(), sha1, sha2)
	if want := []string{"a", "b", "c", "d", "e", "f"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("%q %v; want slices.Equal(files, want)", files, err)
	}
	want := []forge.File{
		{Path: "a", Status: forge.Modified, Additions: 2, Deletions: 1, Patch: "@@ -1 +1,2 @@\n-x\n+y\n+z\n"},
		{Path: "b", Status: forge.Added},
		{Path: "d", Status: forge.Renamed},
		{Path: "e", Status: forge.Removed, Deletions: 1, Patch: "@@ -1 +0,0 @@\n-x\n"},
		{Path: "f", Status: forge.Modified},
	}
	for _, from := range []string{sha1, "", sha1[:8]} {
		d, err := g.Diff(t.Context(), from, sha2)
		if err != nil || d.From != sha1 || d.To != sha2 || !d.Truncated || !slices.Equal(d.Files, want) {
			t.Errorf("from %q: %+v %v; want d.From == sha1 && d.To == sha2 && d.Truncated && slices.Equal(d.Files, want)", from, d, err)
		}
	}
	d, err := g.Diff(t.Context(), "", sha1)
	if err != nil || d.From != "" || d.Truncated || len(d.Files) != 1 || d.Files[0].Additions != 1 {
		t.Errorf(`%+v %v; want d.From == "" && !d.Truncated && len(d.Files) == 1 && d.Files[0].Additions == 1`, d, err)
	}
	for _, sha := range []string{"main", "../../../users", strings.Repeat("9", 40), "", "HEAD"} {
		if _, err := g.Diff(t.Context(), sha1, sha); !errors.Is(err, forge.ErrUnknown) {
			t.Errorf("%q: %v; want errors.Is(err, forge.ErrUnknown)", sha, err)
		}
	}
}

// Whatever answers, the error is short, comes in time and contains no secret.
func TestGitLabMisbehaves(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed: %s, token %q", r.URL, r.Header.Get("PRIVATE-TOKEN"))
	}))
	t.Cleanup(elsewhere.Close)
	status := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(n)
			writeJSON(w, map[string]any{"message": token})
		}
	}
	body := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
	}
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		says string
	}{
		"unauthorized": {status(401), "GITLAB_TOKEN"},
		"forbidden":    {status(403), "GITLAB_TOKEN"},
		"broken":       {status(500), "answered 500"},
		"limited":      {status(429), "answered 429"},
		"garbage":      {body("<html>"), "not the JSON"},
		"other JSON":   {body(`{"id": 1}`), "not the JSON"},
		"bad commit":   {body(`[{"id": "main; rm -rf"}]`), "names no commit"},
		"short commit": {body(`[{"id": "1a1a1a1a"}]`), "names no commit"},
		"large":        {body(`[{"message": "` + strings.Repeat("x", 10<<20) + `"}]`), "larger than"},
		"hang":         {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "does not answer"},
		"slow body": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("["))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "deadline"},
		"drop": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "does not answer"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/x?private_token="+token, http.StatusFound)
		}, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := openGitLab(t, c.h)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := g.Head(ctx, "main")
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), token) || len(err.Error()) > 300 {
				t.Errorf("%v; want an error && strings.Contains(err.Error(), c.says) && !strings.Contains(err.Error(), token) && len(err.Error()) <= 300", err)
			}
		})
	}
}

// A list that may be truncated is not used.
func TestGitLabCutComparison(t *testing.T) {
	t.Parallel()
	many := make([]map[string]any, 1000)
	for i := range many {
		many[i] = map[string]any{"old_path": "a", "new_path": "a"}
	}
	for _, c := range []map[string]any{{"diffs": many}, {"diffs": many[:1], "compare_timeout": true}} {
		g := openGitLab(t, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, c) })
		if files, err := g.Files(t.Context(), sha1, sha2); !errors.Is(err, forge.ErrUnknown) {
			t.Errorf("%d files, %v; want errors.Is(err, forge.ErrUnknown)", len(files), err)
		}
	}
}
