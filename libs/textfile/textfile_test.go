package textfile

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func read(src, encoding string) (string, error) {
	r, err := NewReader(iotest.OneByteReader(strings.NewReader(src)), encoding)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), err
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ src, encoding, want string }{
		"empty":                      {"", "", ""},
		"two bytes":                  {"ab", "", "ab"},
		"UTF-8":                      {"Köln\n精度\n", "", "Köln\n精度\n"},
		"U+FFFD in the file":         {"a\ufffd", "", "a\ufffd"},
		"a mark":                     {"\ufeff\"id\"", "", "\"id\""},
		"a mark alone":               {"\ufeff", "", ""},
		"a declared mark":            {"\ufeffa", "UTF-8", "a"},
		"Latin-1":                    {"K\xf6ln", "latin1", "Köln"},
		"the euro of Windows":        {"\x80", "cp1252", "€"},
		"UTF-16 by its mark":         {"\xff\xfeK\x00\xf6\x00", "", "Kö"},
		"UTF-16BE by its mark":       {"\xfe\xff\x00K\x00\xf6", "", "Kö"},
		"UTF-16 without a mark":      {"K\x00\xf6\x00", "utf-16le", "Kö"},
		"UTF-16 declared and marked": {"\xff\xfeK\x00", "utf-16le", "K"},
		"Shift JIS":                  {"\x90\xb8\x93x", "shift_jis", "精度"},
		"longer than a buffer":       {strings.Repeat("精", 10_000), "", strings.Repeat("精", 10_000)},
	} {
		if got, err := read(c.src, c.encoding); err != nil || got != c.want {
			t.Errorf("%s: got %.40q, %v; want %.40q", name, got, err, c.want)
		}
	}
}

func TestRefusedText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ src, encoding, want string }{
		"Latin-1":                 {"id,size,city,y\n1,2.5,K\xf6ln,9\n", "", "line 2, column 8: not UTF-8 (byte 0xf6)"},
		"columns are characters":  {"Köln,K\xf6ln", "", "line 1, column 7: not UTF-8 (byte 0xf6)"},
		"after a mark":            {"\ufeffa\xff", "", "line 1, column 2: not UTF-8 (byte 0xff)"},
		"a character cut off":     {"a\n\xe7\xb2", "", "line 2, column 1: not UTF-8 (byte 0xe7)"},
		"behind a buffer":         {strings.Repeat("精\n", 5_000) + "\xff", "", "line 5001, column 1: not UTF-8 (byte 0xff)"},
		"UTF-16 without a mark":   {"K\x00", "", "line 1, column 2: a NUL byte, which no text has; UTF-16 without a byte order mark does"},
		"a byte it does not have": {"ab\n\x81\xad", "shift_jis", "line 2, column 1: not shift_jis"},
		"half a pair":             {"\xff\xfea\x00\x00\xd8", "", "line 1, column 2: not utf-16le"},
		"another mark":            {"\xff\xfea\x00", "latin1", "the file begins with the byte order mark of utf-16le, and its encoding is declared as latin1"},
		"no encoding":             {"a", "klingon", `encoding "klingon" is unknown; for example: utf-8, windows-1252, iso-8859-15, utf-16le, shift_jis`},
		"none that can be read":   {"a", "iso-2022-kr", `encoding "iso-2022-kr" is unknown; for example: utf-8, windows-1252, iso-8859-15, utf-16le, shift_jis`},
	} {
		if _, err := read(c.src, c.encoding); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	fault := errors.New("the disk is gone")
	if r, err := NewReader(iotest.ErrReader(fault), ""); !errors.Is(err, fault) {
		t.Errorf("got %v, %v; want the error of the source", r, err)
	}
}

// The output is UTF-8 without NUL, whatever the bytes.
func FuzzText(f *testing.F) {
	for _, src := range []string{"", "\ufeffa", "\xff\xfea\x00", "K\xf6ln", "精度\n"} {
		f.Add([]byte(src), "")
		f.Add([]byte(src), "latin1")
	}
	f.Fuzz(func(t *testing.T, src []byte, encoding string) {
		r, err := NewReader(bytes.NewReader(src), encoding)
		if err != nil {
			return
		}
		text, _ := io.ReadAll(r)
		if again, err := Clean(text); err != nil || !bytes.Equal(bytes.TrimPrefix(text, []byte("\ufeff")), again) {
			t.Errorf("%q as %q: got %q, which is no text: %v", src, encoding, text, err)
		}
	})
}
