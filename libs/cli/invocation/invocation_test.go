package invocation

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// installed makes empty programs in a folder, and a checkout of its parent if asked.
func installed(t *testing.T, checkout bool, programs ...string) (root, folder string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(root, "bin")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range programs {
		files[filepath.Join(folder, name)] = ""
	}
	if checkout {
		files[filepath.Join(root, "go.work")] = ""
	}
	for name := range files {
		if err := os.WriteFile(name, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root, folder
}

func nowhere(string) (string, error) { return "", errors.New("not in PATH") }

func TestWhatToType(t *testing.T) {
	release, bin := installed(t, false, "platform", "mlp")
	checkout, checkoutBin := installed(t, true, "platform", "mlp")
	unbuilt, unbuiltBin := installed(t, true, "mlp")
	_, alone := installed(t, false, "mlp")
	if err := os.Symlink("bin/mlp", filepath.Join(release, "mlp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("bin/platform", filepath.Join(release, "platform")); err != nil {
		t.Fatal(err)
	}
	inPath := func(program string) (string, error) { return filepath.Join(bin, program), nil }
	for name, c := range map[string]struct {
		in                    string // working directory
		i                     Installation
		mlp, platform, repair string
	}{
		"release, ./platform":   {release, Installation{"./platform", bin, nowhere}, "./mlp status", "./platform", "unpack the release again"},
		"release, bin/platform": {release, Installation{"bin/platform", bin, nowhere}, "bin/mlp status", "bin/platform", "unpack the release again"},
		"release, by its path":  {"/", Installation{filepath.Join(bin, "mlp"), bin, nowhere}, filepath.Join(bin, "mlp") + " status", filepath.Join(bin, "platform"), "unpack the release again"},
		"in PATH":               {"/", Installation{"mlp", bin, inPath}, "mlp status", "platform", "unpack the release again"},
		"in PATH, by its path":  {"/", Installation{filepath.Join(bin, "mlp"), bin, inPath}, "mlp status", "platform", "unpack the release again"},
		"checkout":              {checkout, Installation{"bin/platform", checkoutBin, nowhere}, "bin/mlp status", "bin/platform", "make build"},
		"checkout without it":   {unbuilt, Installation{"bin/mlp", unbuiltBin, nowhere}, "bin/mlp status", "make run", "make build"},
		"mlp alone":             {alone, Installation{"./mlp", alone, nowhere}, "./mlp status", "", "unpack the release again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(c.in)
			start, ok := c.i.StartPlatform()
			if got := c.i.Command("mlp", "status"); got != c.mlp || start != c.platform || ok != (c.platform != "") || c.i.RestoreFiles() != c.repair {
				t.Errorf("got %q, %q, %v, %q; want %q, %q, %v, %q", got, start, ok, c.i.RestoreFiles(), c.mlp, c.platform, c.platform != "", c.repair)
			}
		})
	}
}

func TestHintsAreLocalized(t *testing.T) {
	release, bin := installed(t, false, "platform", "mlp")
	if err := os.Symlink("bin/mlp", filepath.Join(release, "mlp")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(release)
	i := Installation{"./mlp", bin, nowhere}
	for hint, want := range map[string]string{
		"see: mlp status": "see: ./mlp status",
		"sign in: mlp auth login; or set MLP_TOKEN, or mlp config show": "sign in: ./mlp auth login; or set MLP_TOKEN, or ./mlp config show",
		"mlp reads its file once":    "./mlp reads its file once",
		"the file of mlp is missing": "the file of mlp is missing",
	} {
		if got := i.Localize(hint); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got, want := i.StartHint(), "start the platform with: platform"; got != want { // ./platform is not there; the release has bin/platform
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestArgumentsAreQuoted(t *testing.T) {
	t.Parallel()
	i := Installation{typed: "mlp", lookPath: nowhere}
	if got, want := i.Command("mlp", "predict", "it's $HOME"), `mlp predict 'it'\''s $HOME'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
