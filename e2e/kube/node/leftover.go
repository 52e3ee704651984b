package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// ownerFile holds the process id of the test that started a node.
const ownerFile = "owner.pid"

// removeLeftovers removes folders and cgroups of nodes whose test was killed. The node's processes ended with that
// test. A folder without an owner file belongs to something else, and one whose owner lives is in use.
func removeLeftovers(t testing.TB) {
	t.Helper()
	owners, _ := filepath.Glob(filepath.Join("/tmp", "node-*", ownerFile)) // the pattern is valid
	for _, file := range owners {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // its own test has just removed it
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || pid <= 0 {
			continue
		}
		if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid))); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		dir := filepath.Dir(file)
		left := &Node{Name: filepath.Base(dir), dir: dir}
		if err := errors.Join(left.removeCgroups(), os.RemoveAll(dir)); err != nil {
			t.Logf("remove what a killed test left of %s: %v", left.Name, err)
		}
	}
}
