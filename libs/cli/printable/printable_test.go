package printable_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/mlp-platform/platform/libs/cli/printable"
)

// hostile has one of each kind that a terminal obeys or does not show.
const hostile = "\x1b[2J\x1b]0;title\x07\x1bP\u009b31m\x7f\u0085\u202eevil\u2066\u200b\u200d\u2060\ufeff\u00ad\U000e0041\u2028\r\x00"

func TestTextIsShownAndNotObeyed(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain é 😀 日本 \u0601":             "plain é 😀 日本 \u0601", // an Arabic number sign is drawn
		"a\tb\nc\r\nd":                    "a\tb\nc\r\nd",
		"\x1b[31mred\x07":                 `\x1b[31mred\x07`,
		"\u009b2Jx\x7f":                   `\u009b2Jx\u007f`,
		"a\u202eb\u2066c\u200f\u061cd":    `a\u202eb\u2066c\u200f\u061cd`,
		"zero\u200bwidth\ufeff\u2060":     `zero\u200bwidth\ufeff\u2060`,
		"tag \U000e0041":                  `tag \udb40\udc41`,
		"bytes \x9b2J \xc3":               `bytes \x9b2J \xc3`,
		"over\rwritten, \u2028 and \x00 ": `over\x0dwritten, \u2028 and \x00 `,
	} {
		if got := printable.Text(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got, want := printable.Line("a\tb\nc\r\nd\x1b"), `a b c d\x1b`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWriterCleansAcrossWrites(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := printable.NewWriter(&b)
	for i := range len(hostile) { // a byte at a time: characters are cut
		if n, err := io.WriteString(w, hostile[i:i+1]); n != 1 || err != nil {
			t.Fatalf("byte %d: got %d, %v, want 1, nil", i, n, err)
		}
	}
	if got, want := b.String(), printable.Text(hostile); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyOwnColorsPass(t *testing.T) {
	t.Parallel()
	text := "\x1b[32mok\x1b[0m \x1b[2mdim\x1b[0m \x1b[8mhidden \x1b[5m\x1b[H\x1b[2J\x1b[32"
	for _, tc := range []struct {
		writer func(io.Writer) *printable.Writer
		want   string
	}{
		{printable.NewColorWriter, "\x1b[32mok\x1b[0m \x1b[2mdim\x1b[0m " + `\x1b[8mhidden \x1b[5m\x1b[H\x1b[2J\x1b[32`},
		{printable.NewWriter, strings.ReplaceAll(text, "\x1b", `\x1b`)},
	} {
		var b strings.Builder
		if _, err := io.WriteString(tc.writer(&b), text); err != nil || b.String() != tc.want {
			t.Errorf("got %q, %v, want %q", b.String(), err, tc.want)
		}
	}
}

func TestWriteControlPassesOwnSequences(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := printable.NewWriter(&b)
	if err := errors.Join(printable.WriteControl(w, "\r\x1b[K"), printable.WriteControl(&b, "\x1b[H")); err != nil || b.String() != "\r\x1b[K\x1b[H" {
		t.Errorf("got %q, %v", b.String(), err)
	}
}

// A line break of two characters stays one where a write ends between them.
func TestWriterKeepsCutLineBreaks(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := printable.NewWriter(&b)
	for _, part := range []string{"a\r", "\nb\r", "c"} {
		if _, err := io.WriteString(w, part); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.String(), "a\r\nb\\x0dc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// slog's JSON escapes only the characters that JSON requires, which leaves C1 and the format characters: the writer
// escapes these as JSON does, so a line stays the same document.
func TestJSONStaysTheSameDocument(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	slog.New(slog.NewJSONHandler(printable.NewWriter(&b), nil)).Error(hostile, slog.String("model", hostile), slog.Any("err", errors.New(hostile)))
	if i := strings.IndexFunc(strings.TrimSuffix(b.String(), "\n"), isActive); i >= 0 {
		t.Errorf("the line has an active character at %d: %q", i, b.String())
	}
	var got struct{ Msg, Model, Err string }
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || got.Msg != hostile || got.Model != hostile || got.Err != hostile {
		t.Errorf("got %q, %v, want three times %q", got, err, hostile)
	}
}

// slog's text handler quotes what Go quotes; the writer is the net below it.
func TestTextHandlerIsCleaned(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	slog.New(slog.NewTextHandler(printable.NewWriter(&b), nil)).Error(hostile, slog.String("model", hostile), slog.String("ctrl", "a\u00adb"))
	if i := strings.IndexFunc(strings.TrimSuffix(b.String(), "\n"), isActive); i >= 0 {
		t.Errorf("the line has an active character at %d: %q", i, b.String())
	}
}

func isActive(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029 || r == unicode.ReplacementChar
}

// Property: nothing active passes, cleaning twice changes nothing more, and the writer agrees with Text.
func FuzzText(f *testing.F) {
	f.Add(hostile)
	f.Add("a\r\nb\xff\xc3")
	f.Fuzz(func(t *testing.T, s string) {
		got := printable.Text(s)
		for _, r := range strings.NewReplacer("\r\n", "", "\n", "", "\t", "").Replace(got) {
			if r != unicode.ReplacementChar && isActive(r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) {
				t.Fatalf("%q became %q, which has %U", s, got, r)
			}
		}
		if again := printable.Text(got); again != got {
			t.Fatalf("%q became %q, and that %q", s, got, again)
		}
		var b strings.Builder
		w := printable.NewWriter(&b)
		for _, part := range []string{s[:len(s)/2], s[len(s)/2:], "\n"} { // the line feed ends an incomplete character
			_, _ = io.WriteString(w, part)
		}
		if want := printable.Text(s + "\n"); b.String() != want {
			t.Fatalf("%q in two parts became %q, want %q", s, b.String(), want)
		}
		if strings.ContainsAny(printable.Line(s), "\n\t\r") {
			t.Fatalf("%q is no line", printable.Line(s))
		}
	})
}
