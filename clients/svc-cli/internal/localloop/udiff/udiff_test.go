package udiff_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/looptest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/udiff"
)

const (
	head   = "diff --git a/f b/f\n"
	index  = "index 1111111..2222222 100644\n"
	names  = "--- a/f\n+++ b/f\n"
	made   = head + "new file mode 100644\n--- /dev/null\n+++ b/f\n"
	gone   = head + "deleted file mode 100755\n--- a/f\n+++ /dev/null\n"
	hunk   = "@@ -1 +1 @@\n-a\n+b\n"
	noEnd  = "\\ No newline at end of file\n"
	second = "diff --git a/g b/g\n--- a/g\n+++ b/g\n" + hunk
)

func TestWhatIsTaken(t *testing.T) {
	t.Parallel()
	changed := udiff.File{Path: "f", Added: []string{"b"}, Removed: []string{"a"}, Hunks: 1}
	for name, c := range map[string]struct {
		patch string
		want  []udiff.File
	}{
		"change":               {head + index + names + hunk, []udiff.File{changed}},
		"without index":        {head + names + hunk, []udiff.File{changed}},
		"index without mode":   {head + "index 1111..2222\n" + names + hunk, []udiff.File{changed}},
		"section of a hunk":    {head + names + "@@ -1 +1 @@ func f() {\n-a\n+b\n", []udiff.File{changed}},
		"two files":            {head + names + hunk + second, []udiff.File{changed, {Path: "g", Added: []string{"b"}, Removed: []string{"a"}, Hunks: 1}}},
		"made":                 {made + "@@ -0,0 +1,2 @@\n+x\n+\n", []udiff.File{{Path: "f", New: true, Added: []string{"x", ""}, Hunks: 1}}},
		"gone":                 {gone + "@@ -1,2 +0,0 @@\n-x\n-y\n", []udiff.File{{Path: "f", Gone: true, Removed: []string{"x", "y"}, Hunks: 1}}},
		"an empty file filled": {head + names + "@@ -0,0 +1 @@\n+x\n", []udiff.File{{Path: "f", Added: []string{"x"}, Hunks: 1}}},
		"two hunks":            {head + names + hunk + "@@ -9,0 +10 @@\n+c\n", nil},
		"hunks in step":        {head + names + hunk + "@@ -9,0 +10,1 @@\n+c\n", nil},
		"lines that look like headers": {head + names + "@@ -1,2 +1,2 @@\n--- a/f\n-@@ -1 +1 @@\n+++ b/f\n+diff --git a/x b/x\n",
			[]udiff.File{{Path: "f", Removed: []string{"-- a/f", "@@ -1 +1 @@"}, Added: []string{"++ b/f", "diff --git a/x b/x"}, Hunks: 1}}},
		"no line end on both sides": {head + names + "@@ -1 +1 @@\n-a\n" + noEnd + "+b\n" + noEnd, []udiff.File{changed}},
		"no line end before":        {head + names + "@@ -1 +1 @@\n-a\n" + noEnd + "+b\n", []udiff.File{changed}},
		"no line end on a context":  {head + names + "@@ -1,2 +1,2 @@\n-a\n+b\n c\n" + noEnd, []udiff.File{changed}},
		"a carriage return is text": {head + names + "@@ -1 +1 @@\n-a\r\n+b\r\n", []udiff.File{{Path: "f", Added: []string{"b\r"}, Removed: []string{"a\r"}, Hunks: 1}}},
		"blanks in a name":          {"diff --git a/a b/c b/a b/c\n--- a/a b/c\n+++ b/a b/c\n" + hunk, []udiff.File{{Path: "a b/c", Added: []string{"b"}, Removed: []string{"a"}, Hunks: 1}}},
		"blanks as git ends them":   {"diff --git a/x y b/x y\n--- a/x y\t\n+++ b/x y\t\n" + hunk, []udiff.File{{Path: "x y", Added: []string{"b"}, Removed: []string{"a"}, Hunks: 1}}},
		"the samples' patches":      {looptest.OtherPatch, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := udiff.Parse([]byte(c.patch))
			if err != nil {
				t.Fatal(err)
			}
			if c.want != nil && !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v; want (c.want == nil || reflect.DeepEqual(got, c.want))", got)
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patch string
		line  int
		why   string
	}{
		"empty":                 {"", 1, "the patch is empty"},
		"too large":             {strings.Repeat("x", udiff.MaxBytes+1), 1, "larger than 2097152 bytes"},
		"zero byte":             {head + names + "@@ -1 +1 @@\n-a\n+\x00\n", 6, "nothing binary"},
		"not UTF-8":             {head + names + "@@ -1 +1 @@\n-a\n+\xff\n", 1, "not UTF-8"},
		"last line has no end":  {head + names + strings.TrimSuffix(hunk, "\n"), 6, "has no end"},
		"a preamble":            {"From: someone\n" + head + names + hunk, 1, `"diff --git" must start`},
		"an empty line before":  {"\n" + head + names + hunk, 1, `"diff --git" must start`},
		"a plain diff":          {names + hunk, 1, `"diff --git" must start`},
		"text after":            {head + names + hunk + "-- \n", 7, `"diff --git" must start`},
		"an empty line after":   {head + names + hunk + "\n", 7, `"diff --git" must start`},
		"a line more":           {head + names + hunk + "+c\n", 7, `"diff --git" must start`},
		"the same file twice":   {head + names + hunk + head + names + hunk, 7, "a second time"},
		"two names":             {"diff --git a/f b/g\n" + names + hunk, 1, "the same plain path"},
		"names of other length": {"diff --git a/f b/ff\n" + names + hunk, 1, "the same plain path"},
		"quoted":                {"diff --git \"a/f\" \"b/f\"\n" + names + hunk, 1, "the same plain path"},
		"no prefix":             {"diff --git f f\n--- f\n+++ f\n" + hunk, 1, "the same plain path"},
		"out of the folder":     {strings.ReplaceAll(head+names+hunk, "/f", "/../f"), 1, "the same plain path"},
		"absolute":              {strings.ReplaceAll(head+names+hunk, "/f", "//f"), 1, "the same plain path"},
		"backslash":             {strings.ReplaceAll(head+names+hunk, "/f", `/a\f`), 1, "the same plain path"},
		"carriage return":       {strings.ReplaceAll(head+names+hunk, "\n", "\r\n"), 1, "the same plain path"},
		"old name differs":      {head + "--- a/g\n+++ b/f\n" + hunk, 2, "must be a/f"},
		"new name differs":      {head + "--- a/f\n+++ b/g\n" + hunk, 3, "must be b/f"},
		"a time on a name":      {head + "--- a/f\t2026-01-02\n+++ b/f\n" + hunk, 2, "must be a/f"},
		"made without saying":   {head + "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", 2, "must be a/f"},
		"gone without saying":   {head + "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", 3, "must be b/f"},
		"said made, but is not": {head + "new file mode 100644\n" + names + hunk, 3, "must be /dev/null"},
		"a link":                {head + "new file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", 2, "mode must be that of a plain file"},
		"a submodule":           {head + "deleted file mode 160000\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", 2, "mode must be that of a plain file"},
		"a link in the index":   {head + "index 1111..2222 120000\n" + names + hunk, 2, `"index" must be followed`},
		"an index that is none": {head + "index 1111\n" + names + hunk, 2, `"index" must be followed`},
		"a change of mode":      {head + "old mode 100644\nnew mode 100755\n", 2, "changes of mode"},
		"a rename":              {head + "similarity index 100%\nrename from f\nrename to g\n", 2, "renames and copies"},
		"a copy":                {head + "copy from f\ncopy to g\n", 2, "renames and copies"},
		"a rewrite":             {head + "dissimilarity index 90%\n" + names + hunk, 2, "a rewrite"},
		"a git binary patch":    {head + index + "GIT binary patch\n", 3, "binary content"},
		"binary files":          {head + index + "Binary files a/f and b/f differ\n", 3, "binary content"},
		"nothing but a name":    {head, 2, "one or more hunks"},
		"an empty file made":    {head + "new file mode 100644\nindex 0000000..e69de29\n", 4, "one or more hunks"},
		"no hunk":               {head + names, 4, "expected a hunk"},
		"a combined hunk":       {head + names + "@@@ -1 -1 +1 @@@\n", 4, "expected a hunk"},
		"counts too low":        {head + names + "@@ -1 +1 @@\n-a\n-b\n+c\n", 6, "more lines than its counts"},
		"counts too high":       {head + names + "@@ -1,2 +1 @@\n-a\n+b\n", 7, "ends before its counts"},
		"counts beyond a file":  {head + names + "@@ -1,3 +1,2 @@\n-a\n+b\n" + second, 7, "starts with a blank"},
		"no start":              {head + names + "@@ -0 +1 @@\n-a\n+b\n", 4, "a hunk starts with"},
		"leading zero":          {head + names + "@@ -01 +1 @@\n-a\n+b\n", 4, "a hunk starts with"},
		"signed":                {head + names + "@@ -+1 +1 @@\n-a\n+b\n", 4, "a hunk starts with"},
		"a number too large":    {head + names + "@@ -1,9999999999 +1 @@\n-a\n+b\n", 4, "a hunk starts with"},
		"no blank before text":  {head + names + "@@ -1 +1 @@x\n-a\n+b\n", 4, "a hunk starts with"},
		"empty hunk":            {head + names + "@@ -0,0 +0,0 @@\n", 4, "the hunk is empty"},
		"only context":          {head + names + "@@ -1 +1 @@\n a\n", 6, "the hunk changes nothing"},
		"an empty context line": {head + names + "@@ -1,2 +1,2 @@\n\n-a\n+b\n", 5, "ends before its counts"},
		"overlap":               {head + names + hunk + hunk, 7, "overlaps"},
		"out of order":          {head + names + "@@ -9 +9 @@\n-a\n+b\n" + hunk, 7, "overlaps"},
		"out of step":           {head + names + hunk + "@@ -9,0 +11 @@\n+c\n", 7, "not as many on both sides"},
		"starts out of step":    {head + names + "@@ -1 +2 @@\n-a\n+b\n", 4, "not as many on both sides"},
		"made of something":     {made + "@@ -1 +1 @@\n-a\n+b\n", 5, "must be 0,0"},
		"gone to something":     {gone + "@@ -1 +1 @@\n-a\n+b\n", 5, "must be 0,0"},
		"made in two hunks":     {made + "@@ -0,0 +1 @@\n+a\n@@ -0,0 +2 @@\n+b\n", 9, "has one hunk"},
		"no line end, then more": {head + names + "@@ -1,2 +1 @@\n-a\n" + noEnd + "-b\n+c\n", 6,
			"only the last line of a side"},
		"a hunk after the end": {head + names + "@@ -1 +1 @@\n-a\n+b\n" + noEnd + "@@ -9 +9 @@\n-c\n+d\n", 8, "no hunk can follow"},
		"no line end of nothing": {head + names + "@@ -1 +1 @@\n" + noEnd + "-a\n+b\n", 5,
			"starts with a blank"},
		"no line end twice": {head + names + "@@ -1 +1 @@\n-a\n" + noEnd + noEnd + "+b\n", 7, "starts with a blank"},
		"too many files":    {manyFiles(udiff.MaxFiles + 1), 6*udiff.MaxFiles + 1, "more than 1000 files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := udiff.Parse([]byte(c.patch))
			var f *udiff.Fault
			if !errors.As(err, &f) || f.Line != c.line || !strings.Contains(f.Reason, c.why) {
				t.Errorf("%v %v; want errors.As(err, &f) && f.Line == c.line && strings.Contains(f.Reason, c.why)", files, err)
			}
		})
	}
	if _, err := udiff.Parse([]byte(manyFiles(udiff.MaxFiles))); err != nil {
		t.Error(err)
	}
}

func manyFiles(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "diff --git a/%d b/%[1]d\n--- a/%[1]d\n+++ b/%[1]d\n%s", i, hunk)
	}
	return b.String()
}

// Git's own output for additions, changes and removals is accepted, and the change
// recognised.
func TestWhatGitWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "core.autocrlf=false"}, args...)...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var long strings.Builder
	for i := range 60 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	git("init", "-q")
	write("long", long.String())
	write("gone", "x\ny")
	write("a name", "one\n")
	git("add", ".")
	git("commit", "-q", "-m", "start")
	write("long", strings.NewReplacer("line 3\n", "", "line 30\n", "line thirty\n", "line 50\n", "line 50\nmore\nand more\n", "line 59\n", "line 59").Replace(long.String()))
	write("a name", "one\ntwo\n")
	write("made", "new\n")
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	git("add", "-A")
	for _, context := range []string{"-U0", "-U3", "-U100"} {
		got, err := udiff.Parse([]byte(git("diff", "--cached", "--no-renames", context)))
		if err != nil {
			t.Fatal(context, err)
		}
		want := []udiff.File{
			{Path: "a name", Added: []string{"two"}},
			{Path: "gone", Gone: true, Removed: []string{"x", "y"}},
			{Path: "long", Removed: []string{"line 3", "line 30", "line 59"}, Added: []string{"line thirty", "more", "and more", "line 59"}},
			{Path: "made", New: true, Added: []string{"new"}},
		}
		for i := range got {
			got[i].Hunks = 0
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v; want reflect.DeepEqual(got, want)", context, got)
		}
	}
}

// Whatever is accepted, a lenient reader of patches reads in the same way: it contains
// nothing that another tool would apply and this one did not see.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		head + index + names + hunk, head + names + hunk + second, made + "@@ -0,0 +1,2 @@\n+x\n+\n", gone + "@@ -1,2 +0,0 @@\n-x\n-y\n",
		head + names + "@@ -1 +1 @@\n-a\n" + noEnd + "+b\n" + noEnd, head + names + hunk + "@@ -9,0 +10 @@ s\n+c\n",
		head + names + "@@ -1,2 +1,2 @@\n--- a/f\n-@@ -1 +1 @@\n+++ b/f\n+diff --git a/x b/x\n", looptest.OtherPatch, looptest.ChangePatch,
		"diff --git a/x y b/x y\n--- a/x y\t\n+++ b/x y\t\n" + hunk, head + "index 1111..2222 120000\n" + names + hunk,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		mine, err := udiff.Parse(data)
		if err != nil {
			var fault *udiff.Fault
			if !errors.As(err, &fault) || fault.Line < 1 || fault.Reason == "" {
				t.Fatalf(`%v is no fault; want errors.As(err, &fault) && fault.Line >= 1 && fault.Reason != ""`, err)
			}
			return
		}
		theirs, preamble, err := gitdiff.Parse(strings.NewReader(string(data)))
		if err != nil || preamble != "" || len(theirs) != len(mine) {
			t.Fatalf(`%d files, another reader has %d, before them %q, %v; want preamble == "" && len(theirs) == len(mine)`, len(mine), len(theirs), preamble, err)
		}
		for i, have := range theirs {
			if got := fromGitdiff(have); !reflect.DeepEqual(got, mine[i]) {
				t.Fatalf("%+v, another reader has %+v; want reflect.DeepEqual(got, mine[i])", mine[i], got)
			}
			if have.IsBinary || have.IsRename || have.IsCopy {
				t.Fatalf("another reader has %+v; want !have.IsBinary && !have.IsRename && !have.IsCopy", have)
			}
		}
	})
}

func fromGitdiff(have *gitdiff.File) udiff.File {
	out := udiff.File{Path: have.NewName, New: have.IsNew, Gone: have.IsDelete, Hunks: len(have.TextFragments)}
	if have.IsDelete {
		out.Path = have.OldName
	}
	for _, fragment := range have.TextFragments {
		for _, line := range fragment.Lines {
			switch text := strings.TrimSuffix(line.Line, "\n"); line.Op {
			case gitdiff.OpAdd:
				out.Added = append(out.Added, text)
			case gitdiff.OpDelete:
				out.Removed = append(out.Removed, text)
			}
		}
	}
	return out
}
