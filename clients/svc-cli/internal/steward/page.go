package steward

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"sync"

	"github.com/mlp-platform/platform/libs/loopback/theme"
)

//go:embed *.html.tmpl
var sources embed.FS

// templates parses on first use: a command that shows no page must not wait for it.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"style":  func() template.CSS { return template.CSS(theme.CSS) }, // constant text of the program
		"status": badgeClass,
		"short":  func(sha string) string { return sha[:min(len(sha), 12)] },
		"number": func(n *int64) any {
			if n == nil {
				return "—"
			}
			return *n
		},
		"text": func(s *string) string {
			if s == nil {
				return "—"
			}
			return *s
		},
	}).ParseFS(sources, "*.html.tmpl"))
})

// badgeClass is the class of a state's badge.
func badgeClass(status string) string {
	return map[string]string{Completed: "good", Blocked: "bad"}[status]
}

// styleSource is the hash of the one style sheet that the page's policy allows.
var styleSource = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(theme.CSS))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
})

func reportPage(r *Report) ([]byte, error) {
	return renderPage("report.html.tmpl", struct {
		*Report
		Facts []Fact
	}{r, r.Facts()})
}

func historyPage(h History) ([]byte, error) {
	return renderPage("history.html.tmpl", struct {
		History
		Facts []Fact
	}{h, h.Facts()})
}

func renderPage(name string, data any) ([]byte, error) {
	var out bytes.Buffer
	err := templates().ExecuteTemplate(&out, name, data)
	return out.Bytes(), err
}
