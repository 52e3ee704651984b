package webui

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// Values of Cache-Control: a hashed name never changes its bytes, any other may with the next release.
const (
	forever    = "public, max-age=31536000, immutable"
	revalidate = "no-cache"
)

// elsewhere are the paths, with all below them, that are no routes of the interface.
var elsewhere = []string{"/api", "/ofrep", "/docs", "/redoc", "/assets"}

// Serve serves GET and HEAD of every path that no other route has: files of the build, and the interface's page for
// its routes.
func (u *UI) Serve(c echo.Context) error {
	r := c.Request()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return errNothing()
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if f, ok := u.files[name]; ok && name != indexPage {
		cache := revalidate
		if strings.HasPrefix(name, "assets/") {
			cache = forever
		}
		return f.serve(c, cache)
	}
	if isElsewhere(r.URL.Path) || !acceptsPage(r) {
		return errNothing()
	}
	if !u.Built() {
		return c.String(http.StatusServiceUnavailable, notBuilt)
	}
	return u.files[indexPage].serve(c, revalidate)
}

// notBuilt is the page of a binary made by go build alone.
const notBuilt = `The web interface is not part of this binary.

Build it in a checkout with:    make build
and start the new bin/ binary.

The API works without it: see /docs for its reference.
`

func errNothing() error {
	return fault.NotFound.New("There is nothing at this path; /docs lists the API, / is the web interface.")
}

func isElsewhere(path string) bool {
	for _, prefix := range elsewhere {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return true
		}
	}
	return false
}

// acceptsPage reports whether the sender would show a page: a browser that navigates says so by name. What takes
// anything, as scripts do, gets the page at / alone, and elsewhere a 404 that it can read.
func acceptsPage(r *http.Request) bool {
	accepted := parseQualities(r.Header.Values("Accept"))
	for _, media := range []string{"text/html", "application/xhtml+xml"} {
		if q, named := accepted[media]; named {
			return q > 0
		}
	}
	return r.URL.Path == "/" && (len(accepted) == 0 || accepted["text/*"] > 0 || accepted["*/*"] > 0)
}

// parseQualities reads an Accept header of any kind: names in lower case with their q.
func parseQualities(values []string) map[string]float64 {
	found := map[string]float64{}
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, params, _ := strings.Cut(part, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		q := 1.0
		for param := range strings.SplitSeq(params, ";") {
			key, value, _ := strings.Cut(strings.TrimSpace(param), "=")
			if strings.EqualFold(strings.TrimSpace(key), "q") {
				var err error
				if q, err = strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil || q < 0 || q > 1 {
					q = 0 // not understood: rather not sent
				}
			}
		}
		found[name] = q
	}
	return found
}

// choose returns the best variant for the client: its preferred encoding, then the smallest.
func (f file) choose(r *http.Request) variant {
	accepted := parseQualities(r.Header.Values("Accept-Encoding"))
	best, bestQ := f.variants[len(f.variants)-1], 0.0
	for _, v := range f.variants[:len(f.variants)-1] {
		q, named := accepted[v.encoding]
		if !named {
			q = accepted["*"]
		}
		if q > bestQ {
			best, bestQ = v, q
		}
	}
	return best
}

func (f file) serve(c echo.Context, cache string) error {
	r, h := c.Request(), c.Response().Header()
	v := f.choose(r)
	h.Set("Cache-Control", cache)
	h.Add("Vary", "Accept-Encoding")
	h.Set("ETag", v.tag)
	if matchesTag(r.Header.Values("If-None-Match"), v.tag) {
		return c.NoContent(http.StatusNotModified)
	}
	if v.encoding != "" {
		h.Set("Content-Encoding", v.encoding)
	}
	h.Set("Content-Type", f.media)
	h.Set("Content-Length", strconv.Itoa(len(v.body)))
	c.Response().WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := c.Response().Write(v.body)
	return err
}

func matchesTag(values []string, tag string) bool {
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if part = strings.TrimPrefix(strings.TrimSpace(part), "W/"); part == tag || part == "*" {
			return true
		}
	}
	return false
}
