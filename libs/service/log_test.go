package service_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/mlp-platform/platform/libs/service"
)

// A log line is read with cat and tail: nothing in it acts on a terminal, and as JSON it is still exact.
func TestLogLinesAreShownAndNotObeyed(t *testing.T) {
	t.Parallel()
	const hostile = "m\x1b[2J\u009b1m\x7f\u202ex\u200b\U000e0041\nnext"
	var b bytes.Buffer
	service.NewLogger(&b, "info").Error("model "+hostile, "model", hostile, "err", errors.New(hostile))
	line := strings.TrimSuffix(b.String(), "\n")
	if i := strings.IndexFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); i >= 0 {
		t.Errorf("an active character at %d: %q", i, line)
	}
	var got struct{ Model, Err string }
	if err := json.Unmarshal([]byte(line), &got); err != nil || got.Model != hostile || got.Err != hostile {
		t.Errorf("got %q, %v, want %q twice", got, err, hostile)
	}
}
