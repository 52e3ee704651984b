// Package page is the control tower's page: seven views over the API, in one document.
package page

import (
	"embed"
	"encoding/json"
	"strings"

	"github.com/mlp-platform/platform/libs/loopback/localpage"
)

//go:embed assets
var assets embed.FS

// Boot is embedded in a page loaded with a fresh launch code: the token and the report to open. The report is the
// file's text; it need not be JSON.
type Boot struct {
	Token  string
	Report json.RawMessage
}

// The parts of the script, in order.
var parts = []string{"api.js", "inspection.js", "overview.js", "runs.js", "story.js", "stream.js", "events.js", "reference.js", "verify.js", "main.js"}

var tower = localpage.Page{
	Title:  "Control tower",
	Body:   readAsset("page.html"),
	Style:  readAsset("page.css"),
	Script: joinScripts(),
}

func joinScripts() string {
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

// HTML returns the page for one answer, whose Content-Security-Policy names the same nonce. With a nil boot the page
// contains no secret and prompts for the token.
func HTML(nonce string, boot *Boot) ([]byte, error) {
	if boot == nil {
		return tower.HTML(nonce, nil)
	}
	return tower.HTML(nonce, &localpage.Boot{Token: boot.Token, Document: string(boot.Report)})
}
