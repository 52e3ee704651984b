package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// prompted signals when a prompt is shown, and keeps the output.
type prompted struct {
	bytes.Buffer
	stands chan struct{}
}

func (p *prompted) Write(b []byte) (int, error) {
	n, err := p.Buffer.Write(b)
	if strings.HasSuffix(string(b), "] ") {
		close(p.stands)
	}
	return n, err
}

func TestConfirmEndsWithItsContext(t *testing.T) {
	t.Parallel()
	in, typing := io.Pipe() // no input ever arrives
	talk := &prompted{stands: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-talk.stands
		cancel()
	}()
	env := &Env{In: in, Err: talk, InTTY: true, Format: output.Table}
	yes, err := env.Confirm(ctx, "Train?", true)
	typing.Close()
	if f := fault.From(err); yes || f == nil || f.Code != "interrupted" || f.Exit != fault.ExitRuntime {
		t.Fatalf(`%v, %v; want !yes && f != nil && f.Code == "interrupted" && f.Exit == fault.ExitRuntime`, yes, err)
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in        string
		byDefault bool
		want      bool
	}{
		{"y\n", false, true}, {" YES \n", false, true}, {"\n", false, false}, {"\n", true, true},
		{"n\n", true, false}, {"", true, false}, {"y", false, true}, {"yess\n", true, false},
	} {
		var talk bytes.Buffer
		env := &Env{In: strings.NewReader(tc.in), Err: &talk, InTTY: true, Format: output.Table}
		yes, err := env.Confirm(t.Context(), "Train?", tc.byDefault)
		if err != nil || yes != tc.want || strings.Contains(talk.String(), "Nothing changed.") == yes {
			t.Errorf(`%+v: %v, %v, %q; want yes == tc.want && strings.Contains(talk.String(), "Nothing changed.") != yes`, tc, yes, err, talk.String())
		}
	}
}

// Two prompts of one run share input typed ahead.
func TestPromptsShareTheirInput(t *testing.T) {
	t.Parallel()
	env := &Env{In: strings.NewReader("y\nn\n"), Err: io.Discard, InTTY: true, Format: output.Table}
	first, err1 := env.Confirm(t.Context(), "One?", false)
	second, err2 := env.Confirm(t.Context(), "Two?", true)
	if !first || second || err1 != nil || err2 != nil {
		t.Fatalf("%v %v, %v %v; want first && !second", first, second, err1, err2)
	}
}

// --watch is for people, or for programs that read a document a line: with another format it is a wrong line, and
// nothing is asked.
func TestWatchRefusesStructuredFormats(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": "http://127.0.0.1:1", "SERVING_URL": "http://127.0.0.1:1", "TRACKING_URI": "http://127.0.0.1:1"}
	for _, command := range []string{"status", "models list", "drift status", "approvals list"} {
		for _, format := range []string{"yaml", "csv"} {
			r := runMLP(t, vars, "", append([]string{"-o", format}, strings.Fields(command+" --watch")...)...)
			if r.code != 2 || r.err != "" || !strings.Contains(r.out, "--watch does not go with --output "+format) {
				t.Errorf("%s %s: exit %d\n%s%s; want r.code == 2 && r.err == \"\" && strings.Contains(r.out, \"--watch does not go with --output \"+format)", format, command, r.code, r.out, r.err)
			}
		}
		if r := runMLP(t, vars, "", strings.Fields(command+" --watch --interval 0")...); r.code != 2 {
			t.Errorf("%s: an interval of 0 exits %d; want r.code == 2", command, r.code)
		}
	}
}

// A round that ends with Ctrl-C ends well.
func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	rounds := 0
	env := &Env{Out: io.Discard, Format: output.Table}
	err := env.watch(ctx, time.Hour, func() error {
		rounds++
		cancel()
		return nil
	})
	if err != nil || rounds != 1 {
		t.Fatalf("%d rounds, %v; want rounds == 1", rounds, err)
	}
}

// Each round is one line of JSON, and nothing else is in the stream.
func TestWatchOfJSONIsALineARound(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	env := &Env{Out: &out, OutTTY: true, Format: output.JSON, Getenv: func(string) string { return "" }}
	err := env.watch(ctx, time.Hour, func() error {
		cancel()
		return env.Printer().Document(map[string]any{"a": []int{1, 2}, "b": "two\nlines"})
	})
	if want := "{\"a\":[1,2],\"b\":\"two\\nlines\"}\n"; err != nil || out.String() != want {
		t.Errorf("got %q, %v, want %q", out.String(), err, want)
	}
}
