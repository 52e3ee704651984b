package startup_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/service/startup"
)

// Texts from a configuration or a dependency reach the terminal of the user who starts a
// service.
func TestStartErrorsAreShownAndNotObeyed(t *testing.T) {
	t.Parallel()
	p := startup.Program[int]{Name: "sample", LoadConfig: func([]string) (int, error) { return 0, errors.New("bad\x1b]0;t\x07 \u009b1m\nsecond") }}
	var out, errOut bytes.Buffer
	code := p.Execute(t.Context(), nil, nil, strings.NewReader(""), &out, &errOut)
	if want := "sample: cannot start:\nbad\\x1b]0;t\\x07 \\u009b1m\nsecond\n"; code != startup.ExitFailed || errOut.String() != want {
		t.Errorf("got %d %q, want %d %q", code, errOut.String(), startup.ExitFailed, want)
	}
}
