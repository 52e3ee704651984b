package controltower_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/go/controltower"
)

// FuzzFrames: where the network cuts a stream does not matter, and a field never
// holds a line's end.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(opening+eventFrame(1)+": keepalive\n\n"+eventFrame(2)+": stream-ended reason=shutdown\n\n"), 30, 2000)
	f.Add([]byte(opening+"id: 1\r\n"), 3, 100)
	f.Add([]byte(opening+strings.Repeat("x", 300)), 5, 200)
	f.Fuzz(func(t *testing.T, data []byte, cut, bound int) {
		if bound < 1 || bound > 1<<20 {
			return
		}
		whole := controltower.Blocks(bound, data)
		cut = min(max(cut, 0), len(data))
		if parts := controltower.Blocks(bound, data[:cut], data[cut:]); !slices.Equal(whole, parts) {
			t.Errorf("cut at %d: %q, whole: %q; want slices.Equal(whole, parts)", cut, parts, whole)
		}
		for _, b := range whole {
			if strings.ContainsAny(b, "\r\n") {
				t.Errorf("a field holds the end of a line: %q; want !strings.ContainsAny(b, \"\\r\\n\")", b)
			}
		}
	})
}
