// Package theme holds the style sheet of every local page, put into each page under the page's own nonce.
//
// It follows the reader's system (dark or light, less motion, forced colours) and needs no script. Colours are custom
// properties; a page uses these and names no colour itself, so that the test here vouches for the contrast of all pages.
package theme

import _ "embed"

// CSS is the style sheet. It holds no "</", so it can be put into a style element unescaped.
//
//go:embed theme.css
var CSS string
