package registry_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// Images are served with their real type, and no other file is served.
func TestImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(controlplanetest.Samples())); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(dir, "models/power_consumption_prediction/JPCP")
	images := filepath.Join(model, "images")
	if err := os.MkdirAll(filepath.Join(images, "folder.png"), 0o755); err != nil {
		t.Fatal(err)
	}
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 20)
	svg := `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	html := "<!DOCTYPE html><script>alert(1)</script>"
	for name, text := range map[string]string{
		"a.png": png, "a.jpg": "\xff\xd8\xff\xe0 jpeg", "a.gif": "GIF89a gif", "a.webp": "RIFF\x00\x00\x00\x00WEBPVP8 ", "a.svg": svg,
		"html.png": html, "svg.png": svg, "page.html": html, "a.PNG": png, ".hidden.png": png, "large.png": png + strings.Repeat("x", 8<<20),
	} {
		if err := os.WriteFile(filepath.Join(images, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside.png")
	if err := os.WriteFile(outside, []byte(png), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(images, "link.png")); err != nil {
		t.Fatal(err)
	}
	p := controlplanetest.Start(t, "MODELREPO_DIR="+dir)
	for file, want := range map[string]string{"a.png": "image/png", "a.jpg": "image/jpeg", "a.gif": "image/gif", "a.webp": "image/webp", "a.svg": "image/svg+xml"} {
		r := p.Want(200, "GET", "/models/jpcp/images/"+file, "", nil)
		if got := r.Header.Get("Content-Type"); got != want || r.Header.Get("X-Content-Type-Options") != "nosniff" || len(r.Body) == 0 {
			t.Errorf(`%s: %q %v; want got == want && r.Header.Get("X-Content-Type-Options") == "nosniff" && len(r.Body) != 0`, file, got, r.Header)
		}
		policy := r.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || file == "a.svg" && !strings.Contains(policy, "sandbox") {
			t.Errorf(`%s: %q; want strings.Contains(policy, "default-src 'none'") && (file != "a.svg" || strings.Contains(policy, "sandbox"))`, file, policy)
		}
	}
	for _, file := range []string{
		"none.png", "html.png", "svg.png", "page.html", "a.PNG", ".hidden.png", "link.png", "large.png", "folder.png",
		"..%2fREADME.md", "..%2f..%2fJPCP%2fimages%2fa.png", "%2e%2e", "a.png%00.png", "a%2fb.png", "%5c..%5ca.png", "a.png%20",
	} {
		p.Refused(404, "image_not_found", "GET", "/models/JPCP/images/"+file, "", nil)
	}
	p.Refused(404, "model_not_found", "GET", "/models/nosuch/images/a.png", "", nil)
}
