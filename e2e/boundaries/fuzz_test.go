package boundaries

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	alternates = regexp.MustCompile(`^(.*)\{(.*)\}(.*)$`)
	fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
)

// Every parser of foreign bytes listed in docs/security.md has the fuzz targets that it names, and every fuzz target of
// the workspace is listed: a renamed target proves nothing, and an unlisted one is soon forgotten.
func TestParsersOfForeignBytesNameTheirFuzzTargets(t *testing.T) {
	t.Parallel()
	unlisted := findFuzzTargets(t)
	targets := slices.Clone(unlisted)
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Parsers of foreign bytes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 4 || cells[0] == "Foreign bytes" {
			continue
		}
		rows++
		packages := expandPackages(cells[1])
		named := codeSpan.FindAllStringSubmatch(cells[2], -1)
		if len(packages) == 0 || len(named) == 0 {
			t.Errorf("%q names no package or no target", line)
		}
		for _, m := range named {
			found := false
			for _, target := range targets {
				if path.Base(target) == m[1] && slices.ContainsFunc(packages, func(p string) bool { return strings.HasPrefix(target, p+"/") }) {
					found = true
					unlisted = slices.DeleteFunc(unlisted, func(s string) bool { return s == target })
				}
			}
			if !found {
				t.Errorf("%s: there is no %s in %q", cells[0], m[1], packages)
			}
		}
	}
	if rows < 35 {
		t.Errorf("the list has %d rows, want at least 35", rows)
	}
	for _, target := range unlisted {
		t.Errorf("docs/security.md does not list %s", target)
	}
}

// expandPackages expands `a/{b,c}` to a/b and a/c.
func expandPackages(cell string) (packages []string) {
	for _, m := range codeSpan.FindAllStringSubmatch(cell, -1) {
		name := strings.TrimSuffix(m[1], "/*")
		parts := alternates.FindStringSubmatch(name)
		if parts == nil {
			packages = append(packages, name)
			continue
		}
		for part := range strings.SplitSeq(parts[2], ",") {
			packages = append(packages, parts[1]+part+parts[3])
		}
	}
	return packages
}

// findFuzzTargets returns all of the workspace, such as libs/auth/FuzzLoad.
func findFuzzTargets(t *testing.T) (targets []string) {
	t.Helper()
	for _, top := range []string{"libs", "services", "clients", "deploy", "e2e"} {
		err := filepath.WalkDir(filepath.Join("../..", top), func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return fmt.Errorf("walk %s: %w", top, err)
			case d.IsDir() && d.Name() == "node_modules":
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(file, "_test.go"):
				return nil
			}
			source, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			dir, err := filepath.Rel("../..", filepath.Dir(file))
			if err != nil {
				return err
			}
			for _, m := range fuzzTarget.FindAllSubmatch(source, -1) {
				targets = append(targets, filepath.ToSlash(dir)+"/"+string(m[1]))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return targets
}
