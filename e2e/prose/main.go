// Command prose checks the English of the project with Vale: comments and strings of Go files, which it extracts, and
// documents. It prints the matches per 10,000 words of each kind and fails above the limit.
//
// usage: prose VALE   from the root of the checkout; -list prints every match
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// limit is the most matches per 10,000 words of one kind.
const limit = 5.0

// outDir receives the extracted text. A line of it has the number of the line that it was in.
const outDir = ".cache/prose"

// kinds are the folders of outDir, in the order in which they are reported.
var kinds = []string{"comments", "test-comments", "strings", "documents", "openapi", "web"}

func main() {
	list := flag.Bool("list", false, "print every match")
	flag.Parse()
	if err := run(flag.Arg(0), *list); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(vale string, list bool) error {
	if vale == "" {
		return fmt.Errorf("usage: prose VALE")
	}
	if err := os.RemoveAll(outDir); err != nil {
		return err
	}
	listed, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	words := map[string]int{}
	for name := range strings.Lines(string(listed)) {
		name = strings.TrimSuffix(name, "\n")
		for kind, text := range extract(name) {
			words[kind] += len(wordExpr.FindAllString(text, -1))
			path := filepath.Join(outDir, kind, name+".txt")
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	return report(vale, words, list)
}

var (
	wordExpr      = regexp.MustCompile(`[A-Za-z']+`)
	generatedExpr = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	// foreignExpr are files whose words are not the project's.
	foreignExpr = regexp.MustCompile(`(^|/)(testdata|node_modules|gen)/|THIRD_PARTY|\.gen\.`)
)

// extract returns the prose of a file by kind; none for a file that has none or cannot be read.
func extract(name string) map[string]string {
	if foreignExpr.MatchString(name) {
		return nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil // deleted, and not yet committed
	}
	switch ext := filepath.Ext(name); {
	case ext == ".go":
		return extractGo(name, content)
	case ext == ".md":
		return map[string]string{"documents": string(content)}
	case filepath.Base(name) == "openapi.yaml":
		return map[string]string{"openapi": string(content)}
	case (ext == ".ts" || ext == ".tsx") && strings.HasPrefix(name, "clients/web/"):
		return map[string]string{"web": string(content)}
	}
	return nil
}

// extractGo returns the comments of a Go file and, unless it is a test, the strings in it that have several words.
func extractGo(name string, content []byte) map[string]string {
	if generatedExpr.Match(content) {
		return nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.ParseComments)
	if err != nil {
		return nil
	}
	var comments, texts lines
	for _, group := range file.Comments {
		for _, c := range group.List {
			if !strings.HasPrefix(c.Text, "//go:") && !strings.HasPrefix(c.Text, "//nolint") {
				comments.put(files.Position(c.Pos()).Line, strings.TrimLeft(c.Text, "/* "))
			}
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return map[string]string{"test-comments": comments.text()}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil && len(strings.Fields(s)) > 2 {
				texts.put(files.Position(lit.Pos()).Line, s)
			}
		}
		return true
	})
	return map[string]string{"comments": comments.text(), "strings": texts.text()}
}

// lines is text by line number.
type lines []string

func (l *lines) put(number int, text string) {
	for i, line := range strings.Split(text, "\n") {
		for len(*l) < number+i {
			*l = append(*l, "")
		}
		(*l)[number+i-1] = strings.TrimSpace((*l)[number+i-1] + " " + line)
	}
}

func (l *lines) text() string { return strings.Join(*l, "\n") + "\n" }

// match is one of Vale's alerts.
type match struct {
	Line    int
	Message string
}

// report runs Vale over what was extracted and prints the figures.
func report(vale string, words map[string]int, list bool) error {
	bad := false
	for _, kind := range kinds {
		dir := filepath.Join(outDir, kind)
		cmd := exec.Command(vale, "--config", ".vale.ini", "--no-exit", "--output", "JSON", dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("vale: %w: %s%s", err, stderr.String(), out)
		}
		var byFile map[string][]match
		if err := json.Unmarshal(out, &byFile); err != nil {
			return fmt.Errorf("vale: %w", err)
		}
		found := 0
		var lines []string
		for path, matches := range byFile {
			found += len(matches)
			name := strings.TrimSuffix(strings.TrimPrefix(path, dir+"/"), ".txt")
			for _, m := range matches {
				lines = append(lines, fmt.Sprintf("%s:%d: %s", name, m.Line, m.Message))
			}
		}
		per := 10000 * float64(found) / float64(max(1, words[kind]))
		fmt.Printf("%-14s %7d words %5d matches %6.1f per 10,000\n", kind, words[kind], found, per)
		if per > limit || list {
			slices.Sort(lines)
			fmt.Println(strings.Join(lines, "\n"))
		}
		bad = bad || per > limit
	}
	if bad {
		return fmt.Errorf("more than %.0f matches per 10,000 words; see .vale/styles/House for what to write instead", limit)
	}
	return nil
}
