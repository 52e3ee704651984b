//go:build e2e

package eval

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// A script cannot reach even this machine's loopback.
func TestScriptRunsWithoutANetwork(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	log, exit, err := runScript(Script{Language: "python", Text: fmt.Sprintf(
		"import socket\nprint('begin')\nsocket.create_connection(('127.0.0.1', %d), 1)", listener.Addr().(*net.TCPAddr).Port)})
	if err != nil || exit != 1 || !strings.Contains(log, "begin") || !strings.Contains(log, "Network is unreachable") {
		t.Errorf("%v, exit code %d and %q; want 1, begin and Network is unreachable", err, exit, log)
	}
}
