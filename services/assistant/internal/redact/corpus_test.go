package redact_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// The figures reached on the corpus. Neither may drop.
const (
	leastRecall           = 1.0
	leastPrecision        = 1.0
	leastHeldOutRecall    = 1.0
	leastHeldOutPrecision = 1.0
)

// A record is one line of the corpus; testdata/corpus/README.md describes the notation.
type record struct {
	at, text string
	secrets  []string // none: a look-alike
}

var (
	secretExpr = regexp.MustCompile(`(?s)⟦(.*?)⟧`)
	markExpr   = regexp.MustCompile(`\[redacted \d+ bytes\]`)
	letterExpr = regexp.MustCompile(`\{U\+([0-9A-F]+)\}`)
)

func readCorpus(t testing.TB, dir string) map[string][]record {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus in %s: %v", dir, err)
	}
	corpus := map[string][]record{}
	for _, name := range files {
		family := strings.TrimSuffix(filepath.Base(name), ".txt")
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		for n := 1; lines.Scan(); n++ {
			r, err := parseRecord(lines.Text())
			if err != nil {
				t.Fatalf("%s:%d: %v", name, n, err)
			}
			if r != nil {
				r.at = fmt.Sprintf("%s:%d", name, n)
				corpus[family] = append(corpus[family], *r)
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return corpus
}

// parseRecord returns nil for a remark or an empty line.
func parseRecord(line string) (*record, error) {
	if line == "" || strings.HasPrefix(line, "#") {
		return nil, nil
	}
	text := strings.NewReplacer("↵", "\n", "⇥", "\t", "␍", "\r", "␛", "\x1b", "␇", "\a", "‹›", "").Replace(line[1:])
	text = letterExpr.ReplaceAllStringFunc(text, func(s string) string {
		code, _ := strconv.ParseInt(s[3:len(s)-1], 16, 32)
		return string(rune(code))
	})
	text = strings.TrimPrefix(text, " ")
	r := &record{}
	for _, m := range secretExpr.FindAllStringSubmatch(text, -1) {
		r.secrets = append(r.secrets, m[1])
	}
	r.text = strings.NewReplacer("⟦", "", "⟧", "").Replace(text)
	switch positive := line[0] == '+'; {
	case !positive && line[0] != '-':
		return nil, fmt.Errorf("a record begins with + or -, not %q", line[:1])
	case positive != (len(r.secrets) > 0):
		return nil, fmt.Errorf("a record with + has a secret in ⟦⟧, one with - has none: %s", line)
	}
	return r, nil
}

// shortestPiece is the length, in letters, of the pieces of a secret that must not show.
const shortestPiece = 4

// findPiece returns a piece of the secret that occurs in the output, but not in the rest of the text or in a mark. A
// secret shorter than a piece counts as a whole.
func findPiece(r record, secret, out string) string {
	rest := secretExpr.ReplaceAllString(r.text, "")
	for _, s := range r.secrets {
		rest = strings.ReplaceAll(rest, s, "\x00")
	}
	out = markExpr.ReplaceAllString(out, "\x00")
	letters := []rune(secret)
	length := min(shortestPiece, len(letters))
	for i := 0; i+length <= len(letters); i++ {
		if piece := string(letters[i : i+length]); strings.Contains(out, piece) && !strings.Contains(rest, piece) {
			return piece
		}
	}
	return ""
}

type score struct{ found, missed, wrong, kept int }

func (s score) recall() float64 { return ratio(s.found, s.found+s.missed) }

func (s score) precision() float64 { return ratio(s.found, s.found+s.wrong) }

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

// scoreRecords counts the results, and reports each record that failed.
func scoreRecords(records []record, tell func(format string, args ...any)) (s score) {
	for _, r := range records {
		out := redact.Text(r.text)
		if again := redact.Text(out); again != out {
			tell("%s: %q, then %q, then %q; want twice as once", r.at, r.text, out, again)
		}
		if len(r.secrets) == 0 {
			if out != r.text {
				s.wrong++
				tell("%s: %q became %q; want it unchanged", r.at, r.text, out)
			} else {
				s.kept++
			}
			continue
		}
		for _, secret := range r.secrets {
			if piece := findPiece(r, secret, out); piece != "" {
				s.missed++
				tell("%s: %q became %q; want %q gone, got %q", r.at, r.text, out, secret, piece)
			} else {
				s.found++
			}
		}
	}
	return s
}

// Recall and precision over the corpus do not drop. `make eval` prints the table of this test.
func TestCorpus(t *testing.T) {
	t.Parallel()
	total := scoreCorpus(t, "corpus", t.Errorf)
	if total.found+total.missed < 500 || total.kept+total.wrong < 500 {
		t.Errorf("%d secrets and %d look-alikes; want 500 of each", total.found+total.missed, total.kept+total.wrong)
	}
	if total.recall() < leastRecall || total.precision() < leastPrecision {
		t.Errorf("recall %.4f, precision %.4f; want %.4f and %.4f", total.recall(), total.precision(), leastRecall, leastPrecision)
	}
}

func scoreCorpus(t *testing.T, dir string, tell func(format string, args ...any)) (total score) {
	t.Helper()
	corpus := readCorpus(t, dir)
	var families []string
	for family := range corpus {
		families = append(families, family)
	}
	slices.Sort(families)
	var table strings.Builder
	row := func(name string, s score) {
		fmt.Fprintf(&table, "%-12s %8d %8d %11d %8d %10.4f %10.4f\n", name, s.found+s.missed, s.missed, s.kept+s.wrong, s.wrong, s.precision(), s.recall())
	}
	fmt.Fprintf(&table, "%-12s %8s %8s %11s %8s %10s %10s\n", "family", "secrets", "missed", "look-alikes", "changed", "precision", "recall")
	for _, family := range families {
		s := scoreRecords(corpus[family], tell)
		row(family, s)
		total = score{total.found + s.found, total.missed + s.missed, total.wrong + s.wrong, total.kept + s.kept}
	}
	row("all", total)
	t.Logf("%s\n%s", dir, table.String())
	return total
}

// The held-out part was written after the rules; docs/decisions/0027 has its first figures. The rules have been
// corrected for it since, so it only guards against regressions.
func TestHeldOut(t *testing.T) {
	t.Parallel()
	total := scoreCorpus(t, "heldout", t.Errorf)
	if total.recall() < leastHeldOutRecall || total.precision() < leastHeldOutPrecision {
		t.Errorf("recall %.4f, precision %.4f; want %.4f and %.4f", total.recall(), total.precision(), leastHeldOutRecall, leastHeldOutPrecision)
	}
}
