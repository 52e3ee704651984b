// Package textfile reads text files from outside: it decodes them to UTF-8, drops the byte order mark, and refuses
// invalid text. Go's parsers do not check: they read the bytes of another encoding as characters, or put U+FFFD in
// their place, and the value is silently changed.
package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"
)

// UTF8 is the encoding of a file that declares none.
const UTF8 = "utf-8"

// Error reports the place at which a file is not valid text in its encoding.
type Error struct {
	// Line and Column of the first wrong byte count from 1; the column counts characters.
	Line, Column int
	Msg          string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg) }

// Canonical returns the name by which the WHATWG's Encoding Standard knows an encoding, such as windows-1252 for latin1.
func Canonical(name string) (string, error) {
	found, err := htmlindex.Get(name)
	if err == nil {
		var canonical string
		if canonical, err = htmlindex.Name(found); err == nil && canonical != "replacement" {
			return canonical, nil
		}
	}
	return "", fmt.Errorf("encoding %.40q is unknown; for example: utf-8, windows-1252, iso-8859-15, utf-16le, shift_jis", name)
}

// marks are the byte order marks, each with the encoding that it announces.
var marks = []struct{ mark, encoding string }{{"\xef\xbb\xbf", UTF8}, {"\xff\xfe", "utf-16le"}, {"\xfe\xff", "utf-16be"}}

// NewReader returns the text of a file as UTF-8, without its byte order mark. Without a declared encoding ("") a mark
// decides, else the file is UTF-8. Reads end with an [*Error] at the first byte that is no text.
func NewReader(src io.Reader, declared string) (io.Reader, error) {
	name := UTF8
	if declared != "" {
		var err error
		if name, err = Canonical(declared); err != nil {
			return nil, err
		}
	}
	head := make([]byte, 3)
	n, err := io.ReadFull(src, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	head = head[:n]
	for _, m := range marks {
		if !bytes.HasPrefix(head, []byte(m.mark)) {
			continue
		}
		if declared != "" && m.encoding != name {
			return nil, fmt.Errorf("the file begins with the byte order mark of %s, and its encoding is declared as %s", m.encoding, declared)
		}
		name, head = m.encoding, head[len(m.mark):]
		break
	}
	text := io.MultiReader(bytes.NewReader(head), src)
	check := &validator{line: 1, column: 1}
	if name != UTF8 {
		found, err := htmlindex.Get(name)
		if err != nil {
			return nil, err
		}
		text, check.decodedFrom = transform.NewReader(text, found.NewDecoder()), name
	}
	return transform.NewReader(text, check), nil
}

// Clean returns a whole UTF-8 text without its byte order mark.
func Clean(src []byte) ([]byte, error) {
	r, err := NewReader(bytes.NewReader(src), "")
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// validator passes UTF-8 text on and ends at the first invalid byte. NUL is refused too: no text file has it, but
// UTF-16 without a mark does.
type validator struct {
	line, column int
	// decodedFrom is the encoding before; U+FFFD in its text is a byte that it does not have.
	decodedFrom string
}

// Reset implements transform.Transformer; the reader calls it once at the start.
func (v *validator) Reset() { v.line, v.column = 1, 1 }

// Transform implements transform.Transformer.
func (v *validator) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	if len(src) > len(dst) {
		src, atEOF, err = src[:len(dst)], false, transform.ErrShortDst
	}
	good, fault := v.scan(src, atEOF)
	copy(dst, src[:good])
	v.advance(src[:good])
	switch {
	case fault != "":
		err = &Error{Line: v.line, Column: v.column, Msg: fault}
	case err == nil && good < len(src):
		err = transform.ErrShortSrc
	}
	return good, good, err
}

// scan returns the length of the valid text at the start, and the fault after it. A truncated character is
// an error only at the end of the file.
func (v *validator) scan(src []byte, atEOF bool) (good int, fault string) {
	if utf8.Valid(src) && bytes.IndexByte(src, 0) < 0 && (v.decodedFrom == "" || !bytes.Contains(src, []byte("\ufffd"))) {
		return len(src), ""
	}
	for good < len(src) {
		if b := src[good]; b > 0 && b < utf8.RuneSelf {
			good++
			continue
		}
		r, size := utf8.DecodeRune(src[good:])
		switch {
		case r == 0:
			return good, "a NUL byte, which no text has; UTF-16 without a byte order mark does"
		case r != utf8.RuneError || size > 1 && v.decodedFrom == "":
			good += size
		case v.decodedFrom != "":
			return good, "not " + v.decodedFrom
		case !atEOF && !utf8.FullRune(src[good:]):
			return good, ""
		default:
			return good, fmt.Sprintf("not UTF-8 (byte 0x%02x)", src[good])
		}
	}
	return good, ""
}

// advance moves the position past the text.
func (v *validator) advance(text []byte) {
	if n := bytes.Count(text, []byte{'\n'}); n > 0 {
		v.line += n
		v.column = 1
		text = text[bytes.LastIndexByte(text, '\n')+1:]
	}
	v.column += utf8.RuneCount(text)
}
