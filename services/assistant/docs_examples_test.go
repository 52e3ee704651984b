package assistant_test

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// shell runs lines of a page as a reader would, with the variables that `platform env` exports.
func (b *bench) shell(lines string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", lines)
	cmd.Dir = b.t.TempDir()
	cmd.Env = append(cmd.Environ(), "ASSISTANT_URL="+b.url, "ASSISTANT_ADMIN_KEY="+admin, "ASSISTANT_OPERATOR_KEY="+operator, "ASSISTANT_READONLY_KEY="+readonly)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%v\n%s\n%s", err, lines, out)
	}
	return string(out)
}

func inOrder(t *testing.T, text string, pieces ...string) {
	t.Helper()
	rest := text
	for _, p := range pieces {
		_, after, found := strings.Cut(rest, p)
		if !found {
			t.Fatalf("there is no %q after what comes before it in:\n%s; want found", p, text)
		}
		rest = after
	}
}

// TestManualExamples runs the shell blocks of the manual, one after the other.
func TestManualExamples(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for _, m := range shellBlock.FindAllStringSubmatch(readPage(t, manual), -1) {
		lines.WriteString(m[1])
	}
	inOrder(t, startBench(t).shell(lines.String()),
		"data: {\"protocol_version\":\"1.0\",\"object\":\"stream.start\",\"session_id\":\"first\"}\n", "DATABASE_URL", "data: [DONE]\n",
		"The selector wants `version=v2`", "This change waits for approval", "kubectl patch service/catalog", "Done: `kubectl patch service/catalog", "2 ready endpoints",
		"data: [DONE]\n",
		"kubectl scale deployment/cart -n shop --replicas=3", `"state": "approved"`, `"digest": "sha256:`, "Done: `kubectl scale deployment/cart", `"state": "succeeded"`, "3 of 3",
	)
}

// TestReadmeWalk runs the part of README that asks the assistant.
func TestReadmeWalk(t *testing.T) {
	t.Parallel()
	for _, m := range shellBlock.FindAllStringSubmatch(readPage(t, "../../README.md"), -1) {
		if !strings.Contains(m[1], "$ASSISTANT_URL") {
			continue
		}
		inOrder(t, startBench(t).shell(m[1]),
			"3 things are wrong.", "`DATABASE_URL`", "`registry.example/shop/web:2.4.0` does not exist", "The selector wants `version=v2`",
			"This change waits for approval", "kubectl patch service/catalog", "-    version: v2", "+    version: v1",
			"Done: `kubectl patch service/catalog", "2 ready endpoints",
		)
		return
	}
	t.Fatal("README does not ask the assistant")
}
