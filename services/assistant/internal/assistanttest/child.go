package assistanttest

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// KillWhenReached starts this test binary again with additional variables, waits until it prints "reached" and kills it
// with SIGKILL.
func KillWhenReached(t testing.TB, environ ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), environ...)
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // its error is the kill
	if err != nil || line != "reached\n" {
		t.Fatalf("the child said %q, %v; want reached", line, err)
	}
}
