// Package webui serves the built web interface from inside the binary.
package webui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// site is Vite's build of clients/web; it holds .keep alone until then.
//
//go:embed all:site
var site embed.FS

// indexPage is the page that every route of the interface begins with.
const indexPage = "index.html"

// encodings by the suffix that the build adds to a file's name, the smallest first.
var encodings = []struct{ name, suffix string }{{"br", ".br"}, {"gzip", ".gz"}}

// mediaTypes of the files that a build has. The system's own table differs between machines.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".json": "application/json", ".map": "application/json", ".svg": "image/svg+xml",
	".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp", ".ico": "image/x-icon", ".woff2": "font/woff2",
	".txt": "text/plain; charset=utf-8", ".webmanifest": "application/manifest+json", ".wasm": "application/wasm",
}

// variant is one form of a file's bytes.
type variant struct {
	encoding string // empty: identity
	body     []byte
	tag      string
}

// file is a file of the build. Its last variant is the plain one.
type file struct {
	media    string
	variants []variant
}

// UI serves the interface. It is immutable and safe for concurrent use.
type UI struct {
	files map[string]file // by URL path without the first slash
}

// Config of New.
type Config struct {
	// Files is the build; nil is the one inside the binary.
	Files fs.FS `part:"optional"`
}

// New reads the build.
func New(cfg Config) (*UI, error) {
	if cfg.Files == nil {
		sub, err := fs.Sub(site, "site")
		if err != nil {
			return nil, err
		}
		cfg.Files = sub
	}
	raw := map[string][]byte{}
	err := fs.WalkDir(cfg.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		raw[name], err = fs.ReadFile(cfg.Files, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("webui: read the build: %w", err)
	}
	ui := &UI{files: map[string]file{}}
	for name, body := range raw {
		if isEncoded(name, raw) {
			continue
		}
		media, ok := mediaTypes[path.Ext(name)]
		if !ok {
			media = "application/octet-stream"
		}
		ui.files[name] = file{media, makeVariants(name, body, raw)}
	}
	if _, built := ui.files[indexPage]; len(ui.files) > 0 && !built {
		return nil, errors.New("webui: the build has no index.html; build it again with make build")
	}
	return ui, nil
}

// Built reports whether the binary has an interface.
func (u *UI) Built() bool { return len(u.files) > 0 }

// isEncoded reports whether a file is the compressed form of another.
func isEncoded(name string, all map[string][]byte) bool {
	for _, e := range encodings {
		if plain, ok := strings.CutSuffix(name, e.suffix); ok && all[plain] != nil {
			return true
		}
	}
	return false
}

func makeVariants(name string, body []byte, all map[string][]byte) []variant {
	digest := sha256.Sum256(body)
	tag := hex.EncodeToString(digest[:12])
	var variants []variant
	for _, e := range encodings {
		if encoded, ok := all[name+e.suffix]; ok && len(encoded) < len(body) {
			variants = append(variants, variant{e.name, encoded, `"` + tag + "-" + e.name + `"`})
		}
	}
	return append(variants, variant{"", body, `"` + tag + `"`})
}
