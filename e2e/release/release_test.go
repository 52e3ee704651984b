//go:build e2e

// Package release checks the scripts of a release and, with the tag full, its archive on a machine that has nothing else.
package release

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// script runs a script of scripts/ and returns its exit code and output.
func script(t *testing.T, name string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(harness.Root(t), "scripts", name), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "RELEASE_KEY=")
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNotesAreTheSectionOfTheVersion(t *testing.T) {
	t.Parallel()
	changelog := filepath.Join(t.TempDir(), "CHANGELOG.md")
	writeFile(t, changelog, "# Changelog\n\nIntroduction.\n\n## Unreleased\n\n### Added\n\n- Next.\n\n\n### Fixed\n\n- Later.\n\n"+
		"## [1.10.0] - 2026-12-01\n\n- Ten.\n\n## 1.1.0 - 2026-11-01\n\n- One.\n\n## 1.0.0\n\n## 0x9.0\n\n- Not 0.9.0.\n")
	for version, want := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		"1.10.0": {0, "- Ten.\n", ""},
		"1.1.0":  {0, "- One.\n", ""},
		"1.1":    {0, "### Added\n\n- Next.\n\n\n### Fixed\n\n- Later.\n", "no section 1.1; the notes are those of Unreleased"},
		"0.9.0":  {0, "### Added\n\n- Next.\n\n\n### Fixed\n\n- Later.\n", "no section 0.9.0"},
		"1.0.0":  {1, "", "a section 1.0.0 without text"},
		"":       {2, "", "usage: "},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := script(t, "notes.sh", version, changelog)
			if code != want.code || stdout != want.stdout || !strings.Contains(stderr, want.stderr) || (want.stderr == "") != (stderr == "") {
				t.Errorf("exit %d, stdout %q, stderr %q; want %d, %q, %q", code, stdout, stderr, want.code, want.stdout, want.stderr)
			}
		})
	}
	empty := filepath.Join(t.TempDir(), "CHANGELOG.md")
	writeFile(t, empty, "# Changelog\n\n## Unreleased\n")
	if code, _, stderr := script(t, "notes.sh", "1.0.0", empty); code != 1 || !strings.Contains(stderr, "neither a section 1.0.0 nor text below Unreleased") {
		t.Errorf("an empty changelog: exit %d, %q; want 1", code, stderr)
	}
}

// keyPair makes an ECDSA P-256 key and returns it and its public half.
func keyPair(t *testing.T, dir, name string) (private, public string) {
	t.Helper()
	private, public = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".pub")
	openssl(t, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", private)
	openssl(t, "pkey", "-in", private, "-pubout", "-out", public)
	return private, public
}

func openssl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("openssl", args...).CombinedOutput(); err != nil {
		t.Fatalf("openssl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// signedFiles is a folder as scripts/release.sh leaves it, signed with the key.
func signedFiles(t *testing.T, private string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var sums strings.Builder
	for _, name := range []string{"RELEASE_NOTES.md", "mlp_1.0.0_linux_amd64.tar.gz"} {
		writeFile(t, filepath.Join(dir, name), "content of "+name)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte("content of "+name)), name)
	}
	writeFile(t, filepath.Join(dir, "SHA256SUMS"), sums.String())
	signature := filepath.Join(t.TempDir(), "signature")
	openssl(t, "dgst", "-sha256", "-sign", private, "-out", signature, filepath.Join(dir, "SHA256SUMS"))
	openssl(t, "base64", "-A", "-in", signature, "-out", filepath.Join(dir, "SHA256SUMS.sig"))
	return dir
}

// Each failure has its exit code, and a sentence that names the file.
func TestVerifyReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	private, public := keyPair(t, keys, "ours")
	_, other := keyPair(t, keys, "other")
	change := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { writeFile(t, filepath.Join(dir, name), text) }
	}
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, string)
		key    string
		code   int
		wants  []string
	}{
		"untouched":             {key: public, wants: []string{"2 files match", "is signed with the key of " + public}},
		"without a key":         {wants: []string{"2 files match", "signature: not checked"}},
		"changed file":          {change: change("RELEASE_NOTES.md", "other"), key: public, code: 1, wants: []string{"RELEASE_NOTES.md was changed or damaged"}},
		"missing file":          {change: remove("mlp_1.0.0_linux_amd64.tar.gz"), key: public, code: 1, wants: []string{"mlp_1.0.0_linux_amd64.tar.gz is missing"}},
		"unlisted file":         {change: change("mlp.exe", ""), key: public, code: 1, wants: []string{"mlp.exe is not listed"}},
		"wrong key":             {key: other, code: 3, wants: []string{"was not made with the key of " + other}},
		"changed digests":       {change: change("SHA256SUMS", strings.Repeat("0", 64)+"  RELEASE_NOTES.md\n"), key: public, code: 3, wants: []string{"RELEASE_NOTES.md was changed", "was not made with"}},
		"no signature":          {change: remove("SHA256SUMS.sig"), key: public, code: 3, wants: []string{"SHA256SUMS.sig is missing"}},
		"damaged signature":     {change: change("SHA256SUMS.sig", "?"), key: public, code: 3, wants: []string{"not a signature in base64"}},
		"private key":           {key: private, code: 2, wants: []string{"is not a public key"}},
		"absent key":            {key: filepath.Join(keys, "none"), code: 2, wants: []string{"none cannot be read"}},
		"no digests":            {change: remove("SHA256SUMS"), code: 2, wants: []string{"SHA256SUMS is missing"}},
		"file of another place": {change: change("SHA256SUMS", strings.Repeat("0", 64)+"  ../passwd\n"), code: 2, wants: []string{"line 1 of", "is not a digest"}},
		"empty digests":         {change: change("SHA256SUMS", ""), code: 2, wants: []string{"is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := signedFiles(t, private)
			if c.change != nil {
				c.change(t, dir)
			}
			args := []string{dir}
			if c.key != "" {
				args = append(args, c.key)
			}
			code, stdout, stderr := script(t, "verify.sh", args...)
			for _, want := range c.wants {
				if !strings.Contains(stdout+stderr, want) {
					t.Errorf("got %q, want %q in it", stdout+stderr, want)
				}
			}
			if code != c.code || (code == 0) != (stderr == "") {
				t.Errorf("exit %d, stderr %q; want %d", code, stderr, c.code)
			}
		})
	}
}

// A release that cannot be made is refused before anything is built.
func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":               "no version given",
		"v1.0.0":         "'v1.0.0' is not a semantic version",
		"1.0":            "'1.0' is not a semantic version",
		"01.0.0":         "'01.0.0' is not a semantic version",
		"1.0.0/../x":     "is not a semantic version",
		"1.0.0 dist two": "too many arguments",
	} {
		if code, _, stderr := script(t, "release.sh", strings.Fields(args)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("release.sh %s: exit %d, %q; want 2, %q", args, code, stderr, want)
		}
	}
}
