package logtext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
)

// repeated returns lines of one length that repeat a text, each with its number.
func repeated(text, end string, length int) string {
	var b strings.Builder
	for i := 0; b.Len() < 2<<20; i++ {
		b.WriteString((fmt.Sprintf("a%d ", i) + strings.Repeat(text, length/len(text)+1))[:length] + end + "\n")
	}
	return b.String()
}

// BenchmarkHostileText: a text crafted to be expensive may take only a few times as long as an ordinary one.
func BenchmarkHostileText(b *testing.B) {
	for name, text := range map[string]string{
		"calm": "GET /frames/17 served in good time ", "words of trouble": "error failed can t could not ", "numbers like a status": "4040 ", "statuses": "status=404 ",
		"counts of nothing": "errors=0 ", "durations": "took 17 s ", "JSON": `{"level":"error","msg":"failed","n":17},`,
	} {
		for shape, hostile := range map[string]string{"": repeated(text, "", 600), ", short lines": repeated(text, "", 15), ", one message": "start\n  " + strings.ReplaceAll(repeated(text, "", 15), "\n", "\n  ")} {
			sources := []logtext.Source{{Pod: "a", Text: hostile}}
			b.Run(name+shape, func(b *testing.B) {
				for b.Loop() {
					logtext.Telling(sources)
					logtext.Frequent(sources, 5)
					logtext.Durations(sources)
					logtext.Refused(sources)
					logtext.Filter{Errors: true}.Choose(hostile)
				}
			})
		}
	}
}

// TestTroubleAfterMuchTrouble: lines after the byte limit for expressions still count, by their words.
func TestTroubleAfterMuchTrouble(t *testing.T) {
	t.Parallel()
	groups, _ := logtext.Telling([]logtext.Source{{Text: repeated("error failed ", "", 600) + "no space left on device\n"}})
	if len(groups) == 0 || groups[0].Line != "no space left on device" {
		t.Errorf("%d groups, the first not the gravest", len(groups))
	}
}
