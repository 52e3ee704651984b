package registry_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// A README that cannot be shown counts as missing, and no reader waits for it.
func TestReadmeThatCannotBeShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(controlplanetest.Samples())); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("# Secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	readme := filepath.Join(dir, "models/power_consumption_prediction/JPCP/README.md")
	image := filepath.Join(filepath.Dir(readme), "images", "x.png")
	if err := os.MkdirAll(filepath.Dir(image), 0o755); err != nil {
		t.Fatal(err)
	}
	p := controlplanetest.Start(t, "MODELREPO_DIR="+dir)
	for name, put := range map[string]func(path string) error{
		"link":      func(path string) error { return os.Symlink(secret, path) },
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder":    func(path string) error { return os.Mkdir(path, 0o755) },
		"too large": func(path string) error { return os.WriteFile(path, make([]byte, 9<<20), 0o600) },
		"none":      func(string) error { return nil },
	} {
		for _, path := range []string{readme, image} {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := put(path); err != nil {
				t.Fatal(err)
			}
		}
		t.Log(name)
		p.Refused(404, "readme_not_found", "GET", "/models/JPCP/readme", "", nil)
		p.Refused(404, "image_not_found", "GET", "/models/JPCP/images/x.png", "", nil)
		p.Refused(404, "card_not_found", "GET", "/model-cards/JPCP", controlplanetest.Reader, nil)
		p.Want(200, "GET", "/model-cards", controlplanetest.Reader, nil)
		p.Want(200, "GET", "/governance/posture", controlplanetest.Reader, nil)
	}
}
