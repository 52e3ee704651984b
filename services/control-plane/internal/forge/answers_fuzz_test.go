package forge

import (
	"bytes"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// answering is a server that answers every request with the same bytes.
type answering struct {
	status int
	body   []byte
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}, nil
}

// maxErrorText limits an error about a foreign answer, in bytes: it goes to logs and to health.
const maxErrorText = 8 << 10

func checkError(t *testing.T, err error) {
	t.Helper()
	if err != nil && len(err.Error()) > maxErrorText {
		t.Fatalf("the error has %d bytes: %.200v; want at most %d", len(err.Error()), err, maxErrorText)
	}
}

// FuzzGitLab: whatever a GitLab server answers, reading it returns storable data or a short error, with memory in
// proportion to the answer.
func FuzzGitLab(f *testing.F) {
	id := strings.Repeat("1a", 20)
	for _, text := range []string{
		`[{"id": "` + id + `", "message": "first\n", "author_name": "Ada", "parent_ids": []}]`,
		`{"id": "` + id + `", "parent_ids": ["` + strings.Repeat("2b", 20) + `"], "diffs": [{"old_path": "a", "new_path": "b", "renamed_file": true, "diff": "@@ -1 +1 @@\n-x\n+y\n"}]}`,
		`{"id": "` + id + `", "parent_ids": ["--upload-pack=x"], "diffs": [{"new_path": "\u0000"}]}`,
		`{"diffs": [` + strings.Repeat(`{},`, 2000) + `{}], "compare_timeout": true}`, `[[[[`, `null`, `{"message": "404"}`, "<html>",
	} {
		f.Add(200, []byte(text))
		f.Add(404, []byte(text))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			status = 200
		}
		g := OpenGitLab("http://gitlab", "group/models", "glpat-secret", time.Minute)
		g.client = &http.Client{Transport: answering{status, body}}
		hostiletest.CheckAllocation(t, uint64(8<<20+512*len(body)), func() {
			head, err := g.Head(t.Context(), "main")
			checkError(t, err)
			if head.SHA != "" && (!isFullSHA(head.SHA) || !abbreviated.MatchString(head.SHA)) || len(head.Author)+len(head.Message) > 2*maxText {
				t.Errorf("head is %.200v; want a full SHA and short texts", head)
			}
			files, err := g.Files(t.Context(), id, id)
			checkError(t, err)
			for _, name := range files {
				if !wire.Storable(name) {
					t.Errorf("file %q; want one that can be stored", name)
				}
			}
			for _, from := range []string{"", id} {
				diff, err := g.Diff(t.Context(), from, id)
				checkError(t, err)
				for _, file := range diff.Files {
					if !wire.Storable(file.Path) || !wire.Storable(file.Patch) {
						t.Errorf("file %.200q with %.200q; want texts that can be stored", file.Path, file.Patch)
					}
				}
			}
		})
	})
}

// FuzzChildAnswers: a child may have been taken over by its input, so its answers are bounded before use, and no folder
// outside its own is used.
func FuzzChildAnswers(f *testing.F) {
	slot := filepath.Join(f.TempDir(), "0")
	for _, text := range []string{
		`{"stage": "reading", "commit": {"SHA": "` + strings.Repeat("1a", 20) + `"}}` + "\n" + `{"done": true}`,
		`{"done": true, "dir": "` + slot + `/trees/x", "files": ["a", "\u0000"]}`, `{"done": true, "dir": "/etc"}`,
		`{"done": true, "dir": "` + slot + `/trees/../../../etc"}`,
		`{"done": true, "fault": "` + strings.Repeat("x\\n", 9000) + `", "kind": "malformed"}`,
		`{"done": true, "commit": {"SHA": "HEAD~1", "Author": "` + strings.Repeat("a", 9000) + `"}}`,
		`{"done": true, "diff": {"To": "..", "Files": [{"Path": "\u0000", "Status": "odd"}]}}`, `{"files": [`, `null`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		hostiletest.CheckAllocation(t, uint64(8<<20+512*len(said)), func() {
			last, err := readAnswers(bytes.NewReader(said), request{Op: opExport, Slot: slot})
			checkError(t, err)
			if c := last.Commit; c.SHA != "" && (!isFullSHA(c.SHA) || !abbreviated.MatchString(c.SHA)) || len(c.Author)+len(c.Message) > 2*maxText+8 {
				t.Errorf("commit %.200v; want a full SHA and short texts", c)
			}
			if len(last.Fault) > maxText+8 || len(last.Files) > 20*maxFiles || last.Diff != nil && len(last.Diff.Files) > maxFiles {
				t.Errorf("a fault of %d bytes, %d files; want them bounded", len(last.Fault), len(last.Files))
			}
			if rel, err := filepath.Rel(slot, last.Dir); last.Dir != "" && (err != nil || !filepath.IsLocal(rel)) {
				t.Errorf("folder %q; want one below %s", last.Dir, slot)
			}
		})
	})
}
