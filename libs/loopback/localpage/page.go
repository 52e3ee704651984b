// Package localpage assembles the self-contained pages of local servers: one HTML document that contains its style and
// script under a nonce, with the script parts that every such page needs.
//
// The parts of the kit, in this order: strict JSON and its canonical form (json.js), building nodes from text (dom.js),
// the session's token (session.js), tabs, shortcuts and the list of keys (keys.js). A page appends its own. They share
// one function scope, hold no handler attributes and put data into the document as text nodes only.
package localpage

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"regexp"
	"strings"

	"github.com/mlp-platform/platform/libs/loopback/theme"
)

//go:embed kit/*.js
var kit embed.FS

// JSON is the part of the kit that reads and writes JSON; it needs no browser.
var JSON = readAsset("json.js")

var script = strings.Join([]string{JSON, readAsset("dom.js"), readAsset("session.js"), readAsset("keys.js")}, "\n")

func readAsset(name string) string {
	data, err := kit.ReadFile("kit/" + name)
	if err != nil {
		panic(err) // the file is part of the binary
	}
	return string(data)
}

// Page holds the parts specific to one page. All of it is constant text of the program.
type Page struct {
	Title  string
	Body   string // markup inside body
	Style  string // after the theme
	Script string // after the kit, in its scope
}

// Boot is the data that only the first load carries.
type Boot struct {
	Token    string `json:"token"`
	Document string `json:"document"` // the text the page opens with; "": none
}

var nonceForm = regexp.MustCompile(`^[A-Za-z0-9+/_=-]{16,128}$`)

var frame = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<link rel="icon" href="data:,">
<style nonce="{{.Nonce}}">{{.Style}}</style>
</head>
<body>
{{.Body}}
<script type="application/json" id="boot" nonce="{{.Nonce}}">{{.Boot}}</script>
<script nonce="{{.Nonce}}">{{.Script}}</script>
</body>
</html>
`))

// HTML renders the page for one answer, whose Content-Security-Policy names the same nonce. A nil boot renders the bare
// page, which prompts for the token.
func (p Page) HTML(nonce string, boot *Boot) ([]byte, error) {
	if !nonceForm.MatchString(nonce) {
		return nil, errors.New("localpage: the nonce must be 16 to 128 characters of base64")
	}
	var out bytes.Buffer
	err := frame.Execute(&out, map[string]any{
		"Title": p.Title,
		"Nonce": nonce,
		"Style": template.CSS(theme.CSS + p.Style),
		"Body":  template.HTML(p.Body),
		// The template escapes this one for its place: it holds text of others.
		"Boot":   boot,
		"Script": template.JS("(() => {\n\"use strict\";\n" + script + "\n" + p.Script + "\n})();"),
	})
	return out.Bytes(), err
}
