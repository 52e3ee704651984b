package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/model"
)

// noFiles is an artifact whose graph is not looked at before the process.
type noFiles struct{}

func (noFiles) ReadFile(string, int64) ([]byte, error) { return nil, fs.ErrNotExist }
func (noFiles) Size() int64                            { return 1 }

// A process that a model has taken over starts another, which holds the pipes open and never ends. The trial still
// ends, together with the rest of the process group.
func TestTrialEndsWithWhatItsProcessStarted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string // $0 is the file for the pid of the other process
		limit  time.Duration
		want   string // a pattern
		leaves bool   // the group, and so lives on
	}{
		"both stay": {`sleep 1000 & echo $! >"$0"; wait`, time.Second, "did nothing for 1s", false},
		// The error depends on whether the request still reaches its pipe.
		"the first ends":      {`sleep 1000 & echo $! >"$0"`, time.Second, "did nothing for 1s|ended its process", false},
		"after an answer":     {`sleep 1000 & echo $! >"$0"; echo '{"reason":"no"}'; wait`, time.Minute, "no", false},
		"in another session":  {`setsid sh -c 'echo $$ >"$0"; exec sleep 1000' "$0" & wait`, time.Second, "did nothing for 1s", true},
		"in another, answers": {`setsid sh -c 'echo $$ >"$0"; exec sleep 1000' "$0" & while ! [ -s "$0" ]; do :; done; echo '{"reason":"no"}'; wait`, time.Minute, "no", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := New(Config{Dir: t.TempDir(), Memory: 768 << 20, Time: c.limit})
			if err != nil {
				t.Fatal(err)
			}
			pidFile := filepath.Join(t.TempDir(), "pid")
			r.command = []string{"/bin/sh", "-c", c.script, pidFile}
			ended := make(chan error, 1)
			go func() {
				_, err := r.Try(context.WithoutCancel(t.Context()), noFiles{}, model.Options{Threads: 1, Rows: 1}, false)
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
				var refusal *Refusal
				if !errors.As(err, &refusal) || !regexp.MustCompile(c.want).MatchString(refusal.Reason) {
					t.Errorf("got %v, want a refusal that matches %q", err, c.want)
				}
			case <-time.After(5 * time.Minute):
				t.Fatal("the trial has not ended")
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
