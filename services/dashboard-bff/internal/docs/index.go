package docs

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Page is a page of the documentation with its headings.
type Page struct {
	Path     string
	Title    string // of the first heading, else the file's name
	Section  Section
	Headings []Heading
}

// Heading is a heading within a page.
type Heading struct {
	Text   string
	Anchor string // as GitHub and the web UI number it
}

// Section is a part of the documentation.
type Section string

// The sections, in the order they are shown.
const (
	Guides    Section = "guides"
	Services  Section = "services"
	Reference Section = "reference"
	Decisions Section = "decisions"
)

// sections with their titles.
var sections = []struct {
	key   Section
	title string
}{{Guides, "Guides"}, {Services, "Services and commands"}, {Reference, "Reference"}, {Decisions, "Decisions"}}

// topics places the pages that lie directly in docs; a page that is not named is a guide.
var topics = map[string]Section{
	"assistant": Services, "assistant-playbooks": Services, "control-plane": Services, "dashboard": Services,
	"evidence-api": Services, "inference": Services, "mlp": Services, "svc": Services, "trainer": Services, "web": Services,
	"audit-ledger": Reference, "costs": Reference, "drift-and-alerts": Reference, "events": Reference,
	"evidence-clients": Reference, "governance": Reference, "model-repository": Reference, "performance": Reference,
}

// sectionOf places a page: by the folder below docs that is named like a section, else by its topic.
func sectionOf(name string) Section {
	rest, _ := strings.CutPrefix(name, "docs/")
	if folder, _, deeper := strings.Cut(rest, "/"); deeper {
		for _, s := range sections {
			if folder == string(s.key) {
				return s.key
			}
		}
	}
	if s, ok := topics[strings.TrimSuffix(path.Base(name), ".md")]; ok {
		return s
	}
	return Guides
}

// Pages lists the documentation. The slice is shared: do not change it.
func (l *Library) Pages() ([]Page, error) {
	l.mu.Lock()
	index, indexed := l.index, l.indexed
	l.mu.Unlock()
	if index != nil && (l.fixed || time.Since(indexed) < freshFor) {
		return index, nil
	}
	names, err := l.findPages()
	if err != nil {
		return nil, err
	}
	index = make([]Page, 0, len(names))
	for _, name := range names {
		raw, err := l.ReadPage(name)
		if err != nil {
			continue // too large, or removed in between
		}
		index = append(index, describePage(name, raw))
	}
	l.mu.Lock()
	l.index, l.indexed = index, time.Now()
	l.mu.Unlock()
	return index, nil
}

// maxHeading limits a heading, in characters.
const maxHeading = 200

func describePage(name string, raw []byte) Page {
	page := Page{Path: name, Section: sectionOf(name), Title: strings.TrimSuffix(path.Base(name), ".md")}
	used := map[string]int{}
	root := goldmark.DefaultParser().Parse(text.NewReader(raw))
	for node := root.FirstChild(); node != nil; node = node.NextSibling() {
		heading, ok := node.(*ast.Heading)
		if !ok {
			continue
		}
		title := strings.Join(strings.Fields(plainText(heading, raw)), " ")
		if title == "" {
			continue
		}
		if runes := []rune(title); len(runes) > maxHeading {
			title = string(runes[:maxHeading])
		}
		if len(page.Headings) == 0 {
			page.Title = title
		}
		page.Headings = append(page.Headings, Heading{Text: title, Anchor: anchorOf(title, used)})
	}
	return page
}

// plainText returns the text of a node without its markup.
func plainText(node ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// anchorOf returns a heading's anchor: letters, digits, '-' and '_' in lower case, blanks as '-', repeats numbered.
func anchorOf(title string, used map[string]int) string {
	anchor := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
	n := used[anchor]
	used[anchor]++
	if n == 0 {
		return anchor
	}
	return anchor + "-" + strconv.Itoa(n)
}

// sortPages orders the pages of a section: README.md first, then the tours, then the others, each by path.
func sortPages(pages []Page) {
	slices.SortStableFunc(pages, func(a, b Page) int {
		return cmp.Or(cmp.Compare(rankOf(a.Path), rankOf(b.Path)), strings.Compare(a.Path, b.Path))
	})
}

// rankOf puts the pages for newcomers before the others.
func rankOf(name string) int {
	switch {
	case name == "README.md":
		return 0
	case strings.HasPrefix(name, "docs/tours/"):
		return 1
	}
	return 2
}
