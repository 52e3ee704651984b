package gate

import (
	"embed"
	"strings"

	"github.com/mlp-platform/platform/libs/loopback/localpage"
)

//go:embed assets
var assets embed.FS

// The parts of the script in their order.
var parts = []string{"matrix.js", "grid.js", "results.js", "main.js"}

var editor = localpage.Page{Title: "Gate editor", Body: readAsset("page.html"), Style: readAsset("page.css"), Script: joinScript()}

func joinScript() string {
	var all strings.Builder
	for _, name := range parts {
		all.WriteString(readAsset(name))
		all.WriteByte('\n')
	}
	return all.String()
}

func readAsset(name string) string {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // the file is part of the binary
	}
	return string(data)
}

// renderPage writes the page; without a grant it holds neither token nor matrix.
func renderPage(nonce string, granted bool, token, matrix string) ([]byte, error) {
	if !granted {
		return editor.HTML(nonce, nil)
	}
	return editor.HTML(nonce, &localpage.Boot{Token: token, Document: matrix})
}
