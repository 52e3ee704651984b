package mcpclient_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/mcpclient"
)

// runChild is a server over stdin and stdout.
func runChild() {
	if os.Getenv(childEnv) == "flood" { // one endless line
		w := bufio.NewWriter(os.Stdout)
		_, _ = w.WriteString(`{"jsonrpc":"2.0","id":1,"result":"`)
		for {
			if _, err := w.WriteString(strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	}
	if os.Getenv(childEnv) == "mute" { // it exits immediately, with a reason
		fmt.Fprintln(os.Stderr, "cannot find the wiki, password=hunter2-in-clear")
		os.Exit(3)
	}
	if os.Getenv(childEnv) == "deaf" { // it reads nothing after the request for its list
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			var q struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.Unmarshal(in.Bytes(), &q) // the library writes it
			switch q.Method {
			case "initialize":
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`+"\n", q.ID)
			case "tools/list":
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"say","inputSchema":{"type":"object"}}]}}`+"\n", q.ID)
				told := make(chan os.Signal, 1)
				signal.Notify(told, syscall.SIGTERM)
				<-told // or it is killed
				os.Exit(0)
			}
		}
	}
	s := newServer()
	addTool(s, mcp.Tool{Name: "environment"}, func(context.Context, string) (string, bool) {
		var names []string
		for _, v := range os.Environ() {
			name, _, _ := strings.Cut(v, "=")
			names = append(names, name)
		}
		slices.Sort(names)
		raw, err := json.Marshal(names)
		return string(raw), err != nil
	})
	addTool(s, mcp.Tool{Name: "pid"}, says(strconv.Itoa(os.Getpid())))
	addTool(s, mcp.Tool{Name: "child"}, func(context.Context, string) (string, bool) {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			return err.Error(), true
		}
		return strconv.Itoa(cmd.Process.Pid), false
	})
	addTool(s, mcp.Tool{Name: "die"}, func(context.Context, string) (string, bool) {
		os.Exit(1)
		return "", false
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// child configures this test binary as a server.
func child(t *testing.T, mode string) mcpclient.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcpclient.Server{Name: "local", Command: self, Env: map[string]service.Secret{childEnv: service.Secret(mode)}}
}

func isAlive(pid string) bool {
	n, err := strconv.Atoi(pid)
	if err != nil || syscall.Kill(n, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat")) // a zombie is dead, even if its parent has not waited for it
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// A started server inherits no variable of the assistant, is restarted when it dies, and ends with the assistant, as do
// its children.
func TestReadOverStdio(t *testing.T) {
	t.Parallel()
	b := setup(t, child(t, "serve"))
	all := []string{"mcp_local_child", "mcp_local_die", "mcp_local_environment", "mcp_local_pid"}
	b.wait(all...)
	var names []string
	if err := json.Unmarshal([]byte(b.read("mcp_local_environment", "").Text), &names); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !slices.Contains([]string{childEnv, "PATH", "HOME", "TMPDIR", "LANG", "TZ"}, name) {
			t.Errorf("the server has the variable %s; want none but its own and the common ones", name)
		}
	}
	first := b.read("mcp_local_pid", "").Text
	b.refused("mcp_local_die", "", "without an answer")
	testenv.Eventually(t, 60*time.Second, func() error {
		if !slices.Equal(b.names(), all) {
			return fmt.Errorf("the tools are %v", b.names())
		}
		if out, err := b.call("mcp_local_pid", ""); err != nil || out.Text == first {
			return fmt.Errorf("got %q, %v; want another process", out.Text, err)
		}
		return nil
	})
	pid, grandchild := b.read("mcp_local_pid", "").Text, b.read("mcp_local_child", "").Text
	if !isAlive(pid) || !isAlive(grandchild) {
		t.Fatalf("the processes %s and %s are not there; want them alive", pid, grandchild)
	}
	b.stop()
	testenv.Eventually(t, 10*time.Second, func() error {
		if isAlive(pid) || isAlive(grandchild) {
			return fmt.Errorf("the processes %s and %s live on", pid, grandchild)
		}
		return nil
	})
}

// A command that cannot run, exits immediately or floods its output is unavailable, and the log has the reason without
// its secrets.
func TestBadCommands(t *testing.T) {
	t.Parallel()
	mute, flood, none := child(t, "mute"), child(t, "flood"), mcpclient.Server{Name: "none", Command: "/no/such/command"}
	mute.Name, flood.Name = "mute", "flood"
	b := setup(t, mute, flood, none)
	b.waitLog("cannot find the wiki")
	b.waitLog("no such file or directory")
	b.waitLog("server=flood")
	if got := b.Check(); got.Status != service.Warn || got.Detail != "away: mute, flood, none" {
		t.Errorf("got %s; want all three named", got)
	}
	if strings.Contains(b.log.String(), "hunter2") {
		t.Errorf("a secret in the log: %s; want none", b.log)
	}
}

// A server that stops reading delays neither its callers nor the shutdown of the assistant.
func TestDeafCommand(t *testing.T) {
	t.Parallel()
	deaf := child(t, "deaf")
	deaf.Timeout = time.Second
	b := setup(t, deaf)
	b.wait("mcp_local_say")
	began := time.Now()
	for range 12 { // more than its pipe holds, and than the limit of concurrent calls
		b.refused("mcp_local_say", `{"text":"`+strings.Repeat("blah ", 3000)+`"}`, "The server local ")
	}
	b.stop()
	if took := time.Since(began); took > 60*time.Second {
		t.Errorf("it took %s; want about a second for each call", took)
	}
}
