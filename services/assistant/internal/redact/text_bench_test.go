package redact_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// Time grows with the text, not with its square: cluster text decides nothing, also not how long an answer takes.
func TestTextIsLinear(t *testing.T) {
	for _, piece := range []string{`"token":"x",`, "token: x ", "name: a value: b ", "a://b:c@", "token=", `\"`, "-----BEGIN X-----", "-", "key:\n", "- name: token\n", "secret: |\n  x\n", "[", "password: [", "eyJ"} {
		took := func(n int) time.Duration {
			text := strings.Repeat(piece, n/len(piece))
			best := time.Hour
			for range 3 {
				start := time.Now()
				redact.Text(text)
				best = min(best, time.Since(start))
			}
			return best
		}
		small, large := took(64<<10), took(512<<10)
		if large > 40*small+50*time.Millisecond {
			t.Errorf("%q: %v for 64 KiB, %v for 512 KiB", piece, small, large)
		}
	}
}
