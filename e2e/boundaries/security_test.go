package boundaries

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// proof matches a link whose text is a test and whose target is the file that declares it.
var proof = regexp.MustCompile("\\[`((?:Test|Fuzz)\\w+)`\\]\\(([^)\\s]+)\\)")

// anyTest matches a test that a page names, linked or not.
var anyTest = regexp.MustCompile("`(Test|Fuzz)[A-Z0-9]\\w*`")

// Every test that a security page names is linked, and exists in the linked file: if its test was renamed or removed, a
// promise has no proof.
func TestSecurityPromisesNameRealTests(t *testing.T) {
	t.Parallel()
	for page, least := range map[string]int{"../../SECURITY.md": 60, "../../docs/threat-model.md": 40} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		links := proof.FindAllStringSubmatch(string(text), -1)
		if named := len(anyTest.FindAllString(string(text), -1)); named != len(links) {
			t.Errorf("%s names %d tests and links %d of them; want all", page, named, len(links))
		}
		if len(links) < least {
			t.Errorf("%s links %d tests, want at least %d", page, len(links), least)
		}
		for _, m := range links {
			declared, err := os.ReadFile(filepath.Join(filepath.Dir(page), m[2]))
			if err != nil {
				t.Errorf("%s: %s: %v", page, m[1], err)
				continue
			}
			if !strings.Contains(string(declared), "\nfunc "+m[1]+"(") {
				t.Errorf("%s: %s declares no %s", page, m[2], m[1])
			}
		}
	}
}

// Each threat of SECURITY.md has a defence and a proof.
func TestEveryThreatHasAProof(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Threat |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 3 || !proof.MatchString(cells[2]) && !strings.Contains(cells[2], "scripts/") {
			t.Errorf("no proof in the third of %d cells: %s", len(cells), line)
		}
	}
	if rows < 19 {
		t.Errorf("%d threats, want at least 19", rows)
	}
}
