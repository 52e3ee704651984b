//go:build unix && !linux

package pg

import (
	"os/exec"
	"strconv"
	"strings"
)

const procFD = false

// serves reports whether the process is alive and is a Postgres.
func (c *cluster) serves(pid int) bool {
	out, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres")
}
