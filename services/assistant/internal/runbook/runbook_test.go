package runbook

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var classes = []string{"crash loop", "TLS Secret", "pending: resources"}

// open writes files into a folder and opens it; log receives the log.
func open(t *testing.T, files map[string]string) (f *Folder, folder string, log *bytes.Buffer) {
	t.Helper()
	folder, log = t.TempDir(), &bytes.Buffer{}
	for name, text := range files {
		write(t, folder, name, text)
	}
	f, err := Open(t.Context(), folder, classes, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return f, folder, log
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	to := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func withMatch(match string) string {
	return "---\ntitle: T\nmatches: " + match + "\n---\nDo this.\n"
}

// TestMatches: every member of a match has to match, and of a list one entry.
func TestMatches(t *testing.T) {
	t.Parallel()
	web := Subject{Kind: "Deployment", Namespace: "shop", Name: "web-api", Labels: map[string]string{"team": "store"}, Finding: "crash loop"}
	alert := Subject{Alert: "KubePodCrashLooping", Namespace: "shop", Labels: map[string]string{"severity": "page"}}
	for _, c := range []struct {
		match string
		to    Subject
		want  bool
	}{
		{"{kinds: [deployment, StatefulSet]}", web, true},
		{"{kinds: [Pod]}", web, false},
		{"{names: ['web-*']}", web, true},
		{"{names: [web]}", web, false},
		{"{names: ['*']}", Subject{Namespace: "shop"}, false},
		{"{namespaces: [shop], names: [db]}", web, false},
		{"{namespaces: ['sh?p'], names: [db, 'web*']}", web, true},
		{"{findings: [CrashLoop]}", web, true},
		{"{findings: [crash-loop]}", web, true},
		{"{findings: ['pending: resources', tls secret]}", web, false},
		{"{labels: {team: store}}", web, true},
		{"{labels: {team: store, tier: web}}", web, false},
		{"{alerts: ['KubePod*']}", web, false},
		{"{alerts: ['KubePod*'], namespaces: [shop]}", alert, true},
		{"{alerts: ['KubePod*'], namespaces: [bank]}", alert, false},
		{"{alerts: [KubePodNotReady]}", alert, false},
		{"{labels: {severity: page}}", alert, true},
	} {
		f, _, log := open(t, map[string]string{"a.md": withMatch(c.match)})
		if got := len(f.Find(c.to)) == 1; got != c.want || log.Len() > 0 {
			t.Errorf("%s for %+v: %v, log %q; want %v and nothing logged", c.match, c.to, got, log, c.want)
		}
	}
}

// TestFaultsAreLoggedOnce: a file with a fault is skipped, and logged once with its line.
func TestFaultsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		"---\ntitle: T\n":                                           `file=a.md line=1 why="the front matter has no end"`,
		"---\ntitle: T\n---\nx":                                     "`matches` names nothing",
		"---\ntitle: T\nmatches: {names: [a}\n---\nx":               `file=a.md line=2 why="did not find expected`,
		"---\ntitle: T\nmatch: {names: [a]}\n---\nx":                `file=a.md line=3 why="field match not found`,
		"---\nmatches:\n  names: {a: b}\n---\nx":                    `file=a.md line=3 why="cannot unmarshal`,
		withMatch("{names: ['[']}"):                                 "is no pattern",
		withMatch("{findings: [typo]}"):                             "is no class of findings",
		withMatch("{findings: [CrashLoop], alerts: [A]}"):           "never match together",
		"---\n# " + strings.Repeat("x", maxFrontMatter) + "\n---\n": "the front matter has over 8192 bytes",
		withMatch("{names: [a]}") + strings.Repeat("x", maxFile):    "it has over 65536 bytes",
	} {
		f, _, log := open(t, map[string]string{"a.md": head, "b.md": withMatch("{names: [a]}")})
		if err := f.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
			t.Errorf("%.60q: logged %s; want one line with %s", head, got, want)
		}
		if found := f.Find(Subject{Name: "a"}); len(found) != 1 || found[0].Path != "b.md" {
			t.Errorf("%.60q: found %v; want the other file", head, found)
		}
	}
}

// TestFolder: Markdown files with front matter are runbooks, also in subfolders; hidden files, other files and links
// out of the folder are not.
func TestFolder(t *testing.T) {
	t.Parallel()
	text := withMatch("{names: [a]}")
	outside := t.TempDir()
	write(t, outside, "secret.md", text)
	f, folder, _ := open(t, map[string]string{"README.md": "# no front matter", "deep/b.md": text, ".git/c.md": text, "d.txt": text, "..data/e.md": text})
	for link, to := range map[string]string{"link-out.md": filepath.Join(outside, "secret.md"), "up.md": "../" + filepath.Base(outside) + "/secret.md", "link-in.md": "..data/e.md", "dir": outside, "gone.md": "nothing.md"} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range f.Find(Subject{Name: "a"}) {
		got = append(got, q.Path)
	}
	if diff := cmp.Diff([]string{"deep/b.md", "link-in.md"}, got); diff != "" {
		t.Errorf("runbooks (-want +got):\n%s", diff)
	}
}

// TestFolderChanges: changed files are read again; if the folder is gone, the last reading stays.
func TestFolderChanges(t *testing.T) {
	t.Parallel()
	f, folder, _ := open(t, map[string]string{"a.md": withMatch("{names: [a]}")})
	write(t, folder, "a.md", "---\ntitle: New\nmatches: {names: [a]}\n---\npassword=hunter2hunter2\n")
	if err := f.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := f.Find(Subject{Name: "a"})
	if len(found) != 1 || found[0].Title != "New" || strings.Contains(found[0].Text, "hunter2") {
		t.Errorf("found %+v; want the new title, and the password redacted", found)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := f.read(t.Context()); err == nil || len(f.Find(Subject{Name: "a"})) != 1 {
		t.Errorf("error %v, found %v; want an error and what was read last", err, f.Find(Subject{Name: "a"}))
	}
	if _, err := Open(t.Context(), folder, nil, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a folder that is not there was opened")
	}
	if none := (*Folder)(nil).Find(Subject{Name: "a"}); none != nil {
		t.Errorf("no folder has %v; want none", none)
	}
}

// TestFolderBounds: a folder that is too deep or too large is read in part, which is logged.
func TestFolderBounds(t *testing.T) {
	t.Parallel()
	files := map[string]string{strings.Repeat("d/", maxDepth+2) + "a.md": withMatch("{names: [deep]}")}
	for i := range maxFiles + 1 {
		files["many/"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i/26)+".md"] = withMatch("{names: [b]}")
	}
	f, _, log := open(t, files)
	if len(f.Find(Subject{Name: "deep"})) > 0 || len(f.Find(Subject{Name: "b"})) != mostQuotes {
		t.Errorf("found %v; want nothing of the deep file, and %d of the others", f.Find(Subject{Name: "b"}), mostQuotes)
	}
	for _, want := range []string{"over 8 folders deep", "over 500 runbooks"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("logged %s; want %q", log, want)
		}
	}
}

// FuzzParse: any file is either a runbook with a match, no runbook, or a runbook with a fault and its line.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{withMatch("{names: [a]}"), "---\n---\n", "---\r\ntitle: x\r\n...\r\n", "# no", "---\na: &a [*a]\n---\n", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, ok, err := parse("a.md", text, map[string]bool{"crashloop": true})
		wrong, isFault := err.(*fault)
		switch {
		case err != nil && (!ok || !isFault || wrong.line < 1):
			t.Errorf("%v, %v; want a fault with a line", ok, err)
		case ok && err == nil && (r.match.isEmpty() || r.Title == ""):
			t.Errorf("%+v; want a title and a match", r)
		case !ok && strings.HasPrefix(string(text), "---\n"):
			t.Errorf("%.40q is no runbook; want one, or a fault", text)
		}
		r.match.fits(Subject{Name: "a", Finding: "crash loop"})
	})
}
