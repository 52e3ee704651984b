package forge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
)

// A child that a repository has taken over starts another process, which holds the pipes open and never ends. The
// reader ends all the same, and ends whatever stayed in the child's group.
func TestReaderEndsWithWhatItsChildStarted(t *testing.T) {
	t.Parallel()
	const answer = `{"done":true,"fault":"no"}`
	for name, c := range map[string]struct {
		script string // $0 is the file for the pid of the other process
		want   string
		leaves bool // the group, and so lives on
	}{
		"both stay":           {`sleep 1000 & echo $! >"$0"; wait`, "could not be read in time", false},
		"the first ends":      {`sleep 1000 & echo $! >"$0"`, "could not be read in time", false},
		"after an answer":     {`sleep 1000 & echo $! >"$0"; echo '` + answer + `'; wait`, "no", false},
		"in another session":  {`setsid sh -c 'echo $$ >"$0"; exec sleep 1000' "$0" & wait`, "could not be read in time", true},
		"in another, answers": {`setsid sh -c 'echo $$ >"$0"; exec sleep 1000' "$0" & while ! [ -s "$0" ]; do :; done; echo '` + answer + `'; wait`, "no", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := 5 * time.Second
			if c.want == "no" {
				limit = time.Minute
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
			pidFile := filepath.Join(t.TempDir(), "pid")
			ended := make(chan error, 1)
			go func() {
				defer cancel()
				_, err := askCommand(ctx, exec.CommandContext(ctx, "/bin/sh", "-c", c.script, pidFile), request{Op: opHead, Dir: "/nowhere"})
				ended <- err
			}()
			var pid int
			testenv.Eventually(t, 20*time.Second, func() error {
				raw, err := os.ReadFile(pidFile)
				if err != nil {
					return err
				}
				pid, err = strconv.Atoi(strings.TrimSpace(string(raw)))
				return err
			})
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			select {
			case err := <-ended:
				var fault *childFault
				if !errors.As(err, &fault) || !strings.Contains(fault.msg, c.want) {
					t.Errorf("got %v, want a fault with %q", err, c.want)
				}
			case <-time.After(5 * time.Minute):
				t.Fatal("the reader has not ended")
			}
			if c.leaves {
				return
			}
			testenv.Eventually(t, 20*time.Second, func() error {
				if cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(cmdline) > 0 { // a dead one has none
					return fmt.Errorf("process %d runs %q", pid, cmdline)
				}
				return nil
			})
		})
	}
}
