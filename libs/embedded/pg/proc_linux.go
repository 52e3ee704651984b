package pg

import (
	"os"
	"strconv"
)

// procFD reports whether /proc/self/fd names the open files.
const procFD = true

// serves reports whether the process is alive and works in the data directory, as
// every Postgres process does. A zombie has no working directory.
func (c *cluster) serves(pid int) bool {
	cwd, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil {
		return false
	}
	data, err := os.Stat(c.data)
	return err == nil && os.SameFile(cwd, data)
}
