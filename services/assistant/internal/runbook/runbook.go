package runbook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits on one file, in bytes.
const (
	maxFile        = 64 << 10
	maxFrontMatter = 8 << 10
)

// Runbook is one file.
type Runbook struct {
	Path  string // within the folder
	Title string
	Text  string // Markdown, unchanged
	match Match
}

// Match states what a runbook applies to. Every given member must match; of a list, one entry. At least one is given.
type Match struct {
	Kinds      []string `yaml:"kinds"`      // in any case
	Names      []string `yaml:"names"`      // patterns of path.Match
	Namespaces []string `yaml:"namespaces"` // patterns
	// Findings are classes, as an answer shows them, ignoring case and blanks.
	Findings []string          `yaml:"findings"`
	Alerts   []string          `yaml:"alerts"` // patterns of alertname
	Labels   map[string]string `yaml:"labels"` // all of them
}

// Subject is something that a runbook may apply to. Empty members are unknown.
type Subject struct {
	Kind, Namespace, Name string
	Labels                map[string]string // of the object, or of the alert
	Finding               string            // its class
	Alert                 string            // its name
}

// Quote is a runbook in a form that may be shown: redacted.
type Quote struct {
	Path, Title, Text string
}

// fault is a fault of a file, with its line.
type fault struct {
	line int
	what string
}

func (f *fault) Error() string { return fmt.Sprintf("line %d: %s", f.line, f.what) }

// frontMatter is the head of a file.
type frontMatter struct {
	Title   string `yaml:"title"`
	Matches *Match `yaml:"matches"`
}

// parse parses a file; ok is false for one without front matter, which is no runbook. classes are the classes of
// findings, in the form of plainClass.
func parse(name string, text []byte, classes map[string]bool) (r Runbook, ok bool, err error) {
	lines := bytes.SplitAfter(bytes.TrimPrefix(text, []byte("\uFEFF")), []byte("\n"))
	if strings.TrimRight(string(lines[0]), " \t\r\n") != "---" {
		return r, false, nil
	}
	end := slices.IndexFunc(lines[1:], func(l []byte) bool {
		s := strings.TrimRight(string(l), " \t\r\n")
		return s == "---" || s == "..."
	}) + 1
	if end == 0 {
		return r, true, &fault{1, "the front matter has no end"}
	}
	head := bytes.Join(lines[1:end], nil)
	if len(head) > maxFrontMatter {
		return r, true, &fault{1, fmt.Sprintf("the front matter has over %d bytes", maxFrontMatter)}
	}
	var m frontMatter
	decoder := yaml.NewDecoder(bytes.NewReader(head))
	decoder.KnownFields(true)
	if err := decoder.Decode(&m); err != nil && !errors.Is(err, io.EOF) {
		return r, true, yamlFault(err)
	}
	if m.Matches == nil || m.Matches.isEmpty() {
		return r, true, &fault{1, "`matches` names nothing, so the runbook is for nothing"}
	}
	if what := m.Matches.check(classes); what != "" {
		return r, true, &fault{1, what}
	}
	title := strings.TrimSpace(m.Title)
	if title == "" {
		title = name
	}
	return Runbook{Path: name, Title: title, Text: string(bytes.Join(lines[end+1:], nil)), match: *m.Matches}, true, nil
}

// yamlFault extracts the line from an error of the YAML package, which counts from the line after the front matter's
// first.
func yamlFault(err error) *fault {
	text := err.Error()
	var all *yaml.TypeError
	if errors.As(err, &all) && len(all.Errors) > 0 {
		text = all.Errors[0]
	}
	_, rest, found := strings.Cut(text, "line ")
	digits, what, cut := strings.Cut(rest, ": ")
	line, bad := strconv.Atoi(digits)
	if !found || !cut || bad != nil {
		return &fault{1, text}
	}
	return &fault{line + 1, what}
}

func (m *Match) isEmpty() bool {
	return len(m.Kinds)+len(m.Names)+len(m.Namespaces)+len(m.Findings)+len(m.Alerts)+len(m.Labels) == 0
}

// check describes conditions that can never match; empty: none.
func (m *Match) check(classes map[string]bool) string {
	for _, patterns := range [][]string{m.Names, m.Namespaces, m.Alerts} {
		for _, p := range patterns {
			if _, err := path.Match(p, ""); err != nil {
				return fmt.Sprintf("%q is no pattern", p)
			}
		}
	}
	for _, class := range m.Findings {
		if !classes[plainClass(class)] {
			return fmt.Sprintf("%q is no class of findings", class)
		}
	}
	if len(m.Findings) > 0 && len(m.Alerts) > 0 {
		return "`findings` and `alerts` never match together: an alert is no finding"
	}
	return ""
}

// plainClass normalizes the spelling of a class.
func plainClass(class string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "", ":", "").Replace(strings.ToLower(class))
}

// fits reports whether the runbook applies to a subject.
func (m *Match) fits(s Subject) bool {
	if s.Alert != "" && len(m.Alerts)+len(m.Labels) == 0 {
		return false // runbooks for the objects that the alert names are found with these
	}
	for key, value := range m.Labels {
		if got, ok := s.Labels[key]; !ok || got != value {
			return false
		}
	}
	return (len(m.Kinds) == 0 || slices.ContainsFunc(m.Kinds, func(k string) bool { return strings.EqualFold(k, s.Kind) })) &&
		fitsPattern(m.Names, s.Name) && fitsPattern(m.Namespaces, s.Namespace) && fitsPattern(m.Alerts, s.Alert) &&
		(len(m.Findings) == 0 || slices.ContainsFunc(m.Findings, func(f string) bool { return plainClass(f) == plainClass(s.Finding) }))
}

func fitsPattern(patterns []string, text string) bool {
	return len(patterns) == 0 || text != "" && slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, text)
		return ok && err == nil
	})
}
