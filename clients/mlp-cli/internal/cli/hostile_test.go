package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
)

// hostile is text of others that a terminal would obey or not show.
const hostile = "m\x1b[2J\x1b]0;t\x07\u009b1m\u202ex\u200b"

// hostileList returns an answer in which every text is hostile.
func hostileList(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`[{"id":"01930000-0000-7000-8000-000000000001","model_id":%[1]s,"kind":"retrain","status":"pending","commit_sha":%[1]s,"commit_msg":%[1]s,"changed_files":[%[1]s],"requested_by":%[1]s,"resolved_by":null,"requested_at":"2026-01-02T03:04:05Z"}]`, text)
}

func activeAt(s string) int {
	return strings.IndexFunc(s, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	})
}

// A hostile model name, commit message or answer acts on no terminal, whatever it is printed as; documents to a pipe
// keep it as it is.
func TestHostileTextsAreShownAndNotObeyed(t *testing.T) {
	t.Parallel()
	url := serveAnswer(t, 200, "application/json", hostileList(t))
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "NO_COLOR": "1"}
	for _, format := range output.Formats {
		for _, terminal := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, terminal %t", format, terminal), func(t *testing.T) {
				t.Parallel()
				var out, errOut bytes.Buffer
				env := &Env{In: io.NopCloser(strings.NewReader("")), Out: &out, Err: &errOut, Now: time.Now, Format: output.Table, OutTTY: terminal, ErrTTY: terminal,
					Getenv: func(k string) string { return vars[k] }}
				one.Lock()
				code := Main(context.Background(), env, []string{"mlp", "-o", string(format), "approvals", "list"})
				one.Unlock()
				if code != 0 || !strings.Contains(out.String(), `[2J`) {
					t.Fatalf("exit %d\nout %q\nerr %q", code, out.String(), errOut.String())
				}
				if data := format.Structured() && !terminal; !data {
					if i := activeAt(out.String()); i >= 0 {
						t.Errorf("an active character at %d: %q", i, out.String())
					}
				}
				if format == output.JSON {
					var list []struct {
						ModelID string `json:"model_id"`
					}
					if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list) != 1 || list[0].ModelID != hostile {
						t.Errorf("got %v, %v, want the model %q", list, err, hostile)
					}
				}
				if format == output.CSV && !terminal && !strings.Contains(out.String(), hostile) {
					t.Errorf("got %q, want it to hold %q as it is", out.String(), hostile)
				}
			})
		}
	}
}

func TestHostileErrorsAreShownAndNotObeyed(t *testing.T) {
	t.Parallel()
	detail, err := json.Marshal(hostile + "\nerror: forged")
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"problem": fmt.Sprintf(`{"type":"x","title":%[1]s,"status":404,"detail":%[1]s,"code":%[1]s,"request_id":%[1]s}`, detail),
		"text":    hostile,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serveAnswer(t, 404, "application/problem+json", body)
			r := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url}, "", "--verbose", "approvals", "list")
			if i := activeAt(r.err + r.out); r.code == 0 || i >= 0 || strings.Contains(r.err, "\nerror: forged") {
				t.Errorf("exit %d, an active character at %d: %q %q", r.code, i, r.err, r.out)
			}
		})
	}
}
