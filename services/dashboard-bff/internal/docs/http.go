package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
)

// maxPath limits a path, in characters.
const maxPath = 500

// checkPath refuses anything but the path of a Markdown file: 422 without a path or for a long one, 400 for one that
// tries to leave the documentation or names another kind of file. It does not check whether the page exists.
func checkPath(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return input.Invalid("must name a page, such as docs/security.md", "query", "path")
	case n > maxPath:
		return input.Invalid("must have at most 500 characters", "query", "path")
	case strings.ContainsRune(name, 0):
		return refusePath("it holds the character U+0000")
	case strings.Contains(name, `\`):
		return refusePath("it holds a backslash; separate folders with /")
	case strings.HasPrefix(name, "/"):
		return refusePath("it begins with /; it is relative to the project's root")
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "." || segment == ".." {
			return refusePath("it holds the segment " + segment)
		}
	}
	switch {
	case strings.Contains(name, "%"):
		return refusePath("it is escaped twice")
	case !strings.HasSuffix(name, ".md"):
		return refusePath("it does not end in .md")
	}
	return nil
}

func refusePath(why string) error {
	return fault.BadDocsPath.New("This is no path of a documentation page: " + why + ". GET /api/docs/tree lists the pages.")
}

// ListPages serves GET /api/docs/tree.
func (l *Library) ListPages(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	pages, err := l.Pages()
	if err != nil {
		return err
	}
	bySection := map[Section][]Page{}
	for _, p := range pages {
		bySection[p.Section] = append(bySection[p.Section], p)
	}
	out := make([]api.DocsSection, 0, len(sections))
	for _, s := range sections {
		section := api.DocsSection{Key: string(s.key), Title: s.title, Files: []api.DocsFile{}}
		sortPages(bySection[s.key])
		for _, p := range bySection[s.key] {
			section.Files = append(section.Files, api.DocsFile{Path: p.Path, Title: p.Title})
		}
		out = append(out, section)
	}
	return c.JSON(http.StatusOK, out)
}

// GetPage serves GET /api/docs/content: the Markdown as it is.
func (l *Library) GetPage(c echo.Context) error {
	name := c.QueryParam("path")
	if err := checkPath(name); err != nil { // first: it has its own code for U+0000
		return err
	}
	if err := input.CheckQuery(c, "path"); err != nil {
		return err
	}
	raw, err := l.ReadPage(name)
	if errors.Is(err, errAbsent) {
		return fault.NotFound.New("There is no such documentation page; GET /api/docs/tree lists those there are.")
	}
	if err != nil {
		return err
	}
	digest := sha256.Sum256(raw)
	tag := `"` + hex.EncodeToString(digest[:16]) + `"`
	c.Response().Header().Set("ETag", tag)
	if c.Request().Header.Get("If-None-Match") == tag {
		return c.NoContent(http.StatusNotModified)
	}
	return c.Blob(http.StatusOK, "text/plain; charset=utf-8", raw)
}
