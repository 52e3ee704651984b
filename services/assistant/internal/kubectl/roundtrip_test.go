package kubectl_test

import (
	"math/rand/v2"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// TestRoundTrip: the rendered line of an operation parses back into that operation.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, v := range operation.Verbs() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, uint64(len(v))))
			for range 500 {
				o := assistanttest.GenerateOperation(r, v)
				if err := o.Validate(); err != nil {
					t.Fatalf("generated %+v: %v", o, err)
				}
				line := kubectl.Render(o)
				back, err := kubectl.Parse(line)
				if err != nil {
					t.Fatalf("%s\n%v", line, err)
				}
				if !reflect.DeepEqual(back, o) {
					t.Fatalf("%s\ngot  %+v\nwant %+v; want reflect.DeepEqual(back, o)", line, back, o)
				}
			}
		})
	}
}

// TestShellReadsTheSame: a POSIX shell splits a rendered line into the words that Parse
// sees, and does nothing else with it.
func TestShellReadsTheSame(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 13))
	var script strings.Builder
	script.WriteString("kubectl() { printf '%s\\0' kubectl \"$@\"; printf '\\1'; }\nquery_prometheus() { printf '%s\\0' query_prometheus \"$@\"; printf '\\1'; }\nquery_loki() { printf '%s\\0' query_loki \"$@\"; printf '\\1'; }\n")
	var want [][]string
	for _, v := range operation.Verbs() {
		for range 20 {
			line := kubectl.Render(assistanttest.GenerateOperation(r, v))
			words, _, err := kubectl.Split(line)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, words)
			script.WriteString(line + "\n")
		}
	}
	cmd := exec.Command("sh", "-s")
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("sh: %v\n%s", err, out)
	}
	calls := strings.Split(strings.TrimSuffix(string(out), "\x01"), "\x01")
	if len(calls) != len(want) {
		t.Fatalf("sh made %d calls of %d lines", len(calls), len(want))
	}
	for i, call := range calls {
		got := strings.Split(strings.TrimSuffix(call, "\x00"), "\x00")
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("sh reads %q, Parse reads %q", got, want[i])
		}
	}
}
