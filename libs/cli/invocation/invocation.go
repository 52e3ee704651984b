// Package invocation knows how this program was started, and from that what its user types to start a program of the
// same installation: bin/mlp in a checkout, ./mlp in an unpacked release, mlp where it is installed in PATH. Every hint
// that quotes a command takes it from here.
package invocation

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Installation is the set of programs that this one belongs to.
type Installation struct {
	typed  string // the name under which this program was started
	folder string // of its file, links resolved; "" if unknown
	// lookPath is exec.LookPath.
	lookPath func(string) (string, error)
}

// Current is the installation of this process.
func Current() Installation {
	i := Installation{lookPath: exec.LookPath}
	if len(os.Args) > 0 {
		i.typed = os.Args[0]
	}
	if file, err := os.Executable(); err == nil {
		if file, err = filepath.EvalSymlinks(file); err == nil {
			i.folder = filepath.Dir(file)
		}
	}
	return i
}

// Command returns what starts the program with the arguments, in the working directory in which this program was
// started.
func (i Installation) Command(program string, args ...string) string {
	words := append([]string{i.path(program)}, args...)
	for n, word := range words {
		words[n] = quote(word)
	}
	return strings.Join(words, " ")
}

func (i Installation) path(program string) string {
	dir := filepath.Dir(i.typed)
	if !strings.ContainsRune(i.typed, filepath.Separator) { // found in PATH
		return program
	}
	beside := filepath.Join(dir, program)
	if !isFile(beside) {
		return program
	}
	if found, err := i.lookPath(program); err == nil && sameFile(found, beside) {
		return program
	}
	if dir == "." {
		return "." + string(filepath.Separator) + program // Join drops the dot, and a shell needs it
	}
	return beside
}

var ownCommand = regexp.MustCompile(`(^|[:;,] |\bor )(mlp|svc|platform) `)

// Localize rewrites the commands in a hint, such as "see: mlp status", as Command does.
func (i Installation) Localize(hint string) string {
	return ownCommand.ReplaceAllStringFunc(hint, func(match string) string {
		parts := ownCommand.FindStringSubmatch(match)
		return parts[1] + i.Command(parts[2]) + " "
	})
}

// StartHint returns what to do where no platform answers.
func (i Installation) StartHint() string {
	if command, ok := i.StartPlatform(); ok {
		return "start the platform with: " + command
	}
	return "start the platform on its machine"
}

// StartPlatform returns the command that starts the platform. ok is false if none is installed here, as with mlp alone.
func (i Installation) StartPlatform() (command string, ok bool) {
	switch {
	case i.folder != "" && isFile(filepath.Join(i.folder, "platform")):
		return i.Command("platform"), true
	case i.isCheckout():
		return "make run", true
	}
	if _, err := i.lookPath("platform"); err == nil {
		return "platform", true
	}
	return "", false
}

// RestoreFiles returns how to replace a missing or damaged file that comes with the programs.
func (i Installation) RestoreFiles() string {
	if i.isCheckout() {
		return "make build"
	}
	return "unpack the release again"
}

// isCheckout reports whether the program is in the folder bin of a checkout.
func (i Installation) isCheckout() bool {
	return i.folder != "" && filepath.Base(i.folder) == "bin" && isFile(filepath.Join(filepath.Dir(i.folder), "go.work"))
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./~-]+$`)

// quote makes one word of s for a POSIX shell.
func quote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
