// Package udiff reads the patches that a verifier accepts: unified diffs as git writes
// them, of text files that are added, changed or removed, and nothing else.
//
// The libraries for this read leniently, as they must: they skip text before and between
// files, take names and modes from whichever line has them, and apply what they
// understood. A verifier must not: what it skips, another tool may apply. So every byte
// is accounted for here, and everything ambiguous is refused: a preamble, renames and
// copies, mode changes, links, submodules, binary content, quoted names, a name that
// differs between its three places, hunks that overlap or whose counts are not those of
// their lines.
package udiff

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
)

// Limits of a patch.
const (
	MaxBytes = 2 << 20
	MaxFiles = 1000
)

// File describes a patch's change to one file.
type File struct {
	Path           string
	New, Gone      bool     // the patch makes the file; removes it
	Added, Removed []string // lines without their end, in the order of the patch
	Hunks          int
}

// Fault is why a patch was refused, and at which line, counted from 1.
type Fault struct {
	Line   int
	Reason string
}

func (f *Fault) Error() string { return fmt.Sprintf("line %d: %s", f.Line, f.Reason) }

// Parse reads a patch of one file or more. A fault is a *Fault.
func Parse(data []byte) ([]File, error) {
	p := &parser{}
	switch {
	case len(data) == 0:
		return nil, p.fail("the patch is empty")
	case len(data) > MaxBytes:
		return nil, p.fail("the patch is larger than %d bytes", MaxBytes)
	case bytes.IndexByte(data, 0) >= 0:
		p.next = bytes.Count(data[:bytes.IndexByte(data, 0)], []byte("\n"))
		return nil, p.fail("a zero byte: nothing binary is allowed")
	case !utf8.Valid(data):
		return nil, p.fail("the patch is not UTF-8: nothing binary is allowed")
	case data[len(data)-1] != '\n':
		p.next = bytes.Count(data, []byte("\n"))
		return nil, p.fail("the last line has no end")
	}
	p.lines = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	var files []File
	seen := map[string]bool{}
	for p.next < len(p.lines) {
		start := p.next
		f, err := p.file()
		if err != nil {
			return nil, err
		}
		if seen[f.Path] {
			return nil, &Fault{Line: start + 1, Reason: "the file is changed a second time"}
		}
		if seen[f.Path] = true; len(files) == MaxFiles {
			return nil, &Fault{Line: start + 1, Reason: fmt.Sprintf("more than %d files are changed", MaxFiles)}
		}
		files = append(files, f)
	}
	return files, nil
}

type parser struct {
	lines []string
	next  int // index of the line to read
}

// fail is a fault at the line that is to be read.
func (p *parser) fail(format string, a ...any) *Fault {
	return &Fault{Line: p.next + 1, Reason: fmt.Sprintf(format, a...)}
}

// peek returns the line to read, or "" at the end; no header line is empty.
func (p *parser) peek() string {
	if p.next < len(p.lines) {
		return p.lines[p.next]
	}
	return ""
}

// take reads a line that starts with prefix and returns the rest of it.
func (p *parser) take(prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(p.peek(), prefix)
	if ok && p.next < len(p.lines) {
		p.next++
		return rest, true
	}
	return "", false
}

func (p *parser) file() (File, error) {
	var f File
	names, ok := p.take("diff --git ")
	if !ok {
		return f, p.fail(`"diff --git" must start a file; nothing is allowed before, between or after files`)
	}
	if f.Path, ok = splitTwice(names); !ok {
		p.next--
		return f, p.fail("both names must be the same plain path, as a/PATH b/PATH")
	}
	if err := p.modes(&f); err != nil {
		return f, err
	}
	if err := p.index(); err != nil {
		return f, err
	}
	for _, side := range []struct {
		mark, name string
		absent     bool
	}{{"--- ", "a/" + f.Path, f.New}, {"+++ ", "b/" + f.Path, f.Gone}} {
		want := side.name
		if side.absent {
			want = "/dev/null"
		}
		if got, ok := p.take(side.mark); !ok {
			return f, p.fail("expected %q: %s", strings.TrimSpace(side.mark), describeUnsupported(p.peek()))
		} else if got != want && (got != want+"\t" || side.absent || !strings.Contains(want, " ")) { // git ends a name with blanks so
			p.next--
			return f, p.fail("the name must be %s", want)
		}
	}
	return f, p.hunks(&f)
}

// describeUnsupported names the unsupported content of a line where only text changes
// may be.
func describeUnsupported(line string) string {
	for _, kind := range []struct{ prefix, name string }{
		{"GIT binary patch", "binary content is not allowed"}, {"Binary files ", "binary content is not allowed"},
		{"similarity index", "renames and copies are not allowed"}, {"dissimilarity index", "a rewrite is not allowed"},
		{"rename ", "renames and copies are not allowed"}, {"copy ", "renames and copies are not allowed"},
		{"old mode", "changes of mode are not allowed"}, {"new mode", "changes of mode are not allowed"},
	} {
		if strings.HasPrefix(line, kind.prefix) {
			return kind.name
		}
	}
	return "a file has one or more hunks of text"
}

// splitTwice reads "a/PATH b/PATH". The path is the same on both sides, so a blank in it
// leaves no doubt where the first ends.
func splitTwice(names string) (string, bool) {
	half := (len(names) - len(" ")) / 2
	if len(names)%2 != 1 || half <= len("a/") {
		return "", false
	}
	a, aOK := strings.CutPrefix(names[:half], "a/")
	b, bOK := strings.CutPrefix(names[half+1:], "b/")
	if !aOK || !bOK || a != b || names[half] != ' ' || !field.IsPath(a) || strings.ContainsRune(a, '"') {
		return "", false
	}
	return a, true
}

// The modes a file may have: text is neither a link nor a submodule.
func fileMode(s string) bool { return s == "100644" || s == "100755" }

func (p *parser) modes(f *File) error {
	for _, kind := range []struct {
		prefix string
		flag   *bool
	}{{"new file mode ", &f.New}, {"deleted file mode ", &f.Gone}} {
		if mode, ok := p.take(kind.prefix); ok {
			if !fileMode(mode) {
				p.next--
				return p.fail("the mode must be that of a plain file, 100644 or 100755")
			}
			*kind.flag = true
			return nil
		}
	}
	return nil
}

// index reads the optional "index OLD..NEW[ MODE]".
func (p *parser) index() error {
	rest, ok := p.take("index ")
	if !ok {
		return nil
	}
	ids, mode, hasMode := strings.Cut(rest, " ")
	from, to, both := strings.Cut(ids, "..")
	if !both || !objectID(from) || !objectID(to) || hasMode && !fileMode(mode) {
		p.next--
		return p.fail(`"index" must be followed by two object ids and, if any, the mode of a plain file`)
	}
	return nil
}

func objectID(s string) bool {
	return len(s) >= 4 && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}
