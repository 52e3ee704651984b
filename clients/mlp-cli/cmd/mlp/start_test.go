package main

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var initialised = regexp.MustCompile(`init (\S+) @.* (\d+) bytes`)

// The platform's packages compile no patterns, parse no templates and fill no large tables before main: every command
// would wait for it. The allocations of an initialisation show its cost as well as its time, and are the same on every
// machine.
func TestNothingIsPreparedAtStart(t *testing.T) {
	t.Parallel()
	const own, most = "github.com/mlp-platform/platform/", 16 << 10
	c := mlpProcess(t, "--version")
	c.Env = append(c.Env, "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	c.Stderr = &trace
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range initialised.FindAllStringSubmatch(trace.String(), -1) {
		path := strings.TrimPrefix(m[1], own)
		if path == m[1] || path == "libs/onnx/onnxpb" { // generated code registers its messages
			continue
		}
		seen++
		if n, err := strconv.Atoi(m[2]); err != nil || n > most {
			t.Errorf("the initialisation of %s allocates %s bytes, want at most %d: make it at its first use", path, m[2], most)
		}
	}
	if seen == 0 {
		t.Errorf("got no package of %s in the trace, want some", own)
	}
}
