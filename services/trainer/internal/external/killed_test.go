package external

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
)

// folderOfTrainer makes the test binary a trainer that fits by a command and waits for it.
const folderOfTrainer = "EXTERNAL_TEST_TRAINER_FOLDER"

func TestMain(m *testing.M) {
	dir := os.Getenv(folderOfTrainer)
	if dir == "" {
		os.Exit(m.Run())
	}
	c, argv, _ := shell(`echo $$ > "$OUT_DIR/../../pid.new"; mv "$OUT_DIR/../../pid.new" "$OUT_DIR/../../pid"; exec sleep 600`)
	_, err := c.Fit(context.Background(), argv, dir, Spec{}, part(1), nil)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A trainer that is killed by SIGKILL cannot end its command; the kernel does.
func TestKilledTrainerEndsTheCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trainer := exec.Command(os.Args[0])
	trainer.Env = append(os.Environ(), folderOfTrainer+"="+dir)
	trainer.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	trainer.Stderr = os.Stderr
	if err := trainer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = trainer.Process.Kill() })
	pid := 0
	testenv.Eventually(t, 30*time.Second, func() error {
		text, err := os.ReadFile(dir + "/pid")
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err
	})
	t.Cleanup(func() {
		if isRunning(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	if err := trainer.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := trainer.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 30*time.Second, func() error {
		if isRunning(pid) {
			return fmt.Errorf("the command, process %d, outlives the trainer", pid)
		}
		return nil
	})
}
