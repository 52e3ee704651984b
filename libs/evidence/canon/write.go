package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// C1 writes the form of API documents, events, evidence, store rows and every
// "sha256:" digest: keys sorted by code point, no white space, non-ASCII raw,
// only the escapes JSON demands. It fails on a value that JSON cannot hold.
func C1(v Value) ([]byte, error) { return writeValue(v, form{sorted: true}, "") }

// C2 writes C1 with each non-ASCII character as an escape of four digits, in surrogate pairs: the
// form of the gate family's digests.
func C2(v Value) ([]byte, error) { return writeValue(v, form{sorted: true, ascii: true}, "") }

// J writes C2 and a newline: what commands print under --json.
func J(v Value) ([]byte, error) { return writeValue(v, form{sorted: true, ascii: true}, "\n") }

// R writes the reports of the gate family: keys in their own order, ASCII only,
// one line without white space, and a newline.
func R(v Value) ([]byte, error) { return writeValue(v, form{ascii: true}, "\n") }

// RPretty is R indented by two spaces.
func RPretty(v Value) ([]byte, error) { return writeValue(v, form{ascii: true, indent: true}, "\n") }

// P writes files for people: indented by two spaces, keys sorted, non-ASCII raw,
// and a newline.
func P(v Value) ([]byte, error) { return writeValue(v, form{sorted: true, indent: true}, "\n") }

// Digest is "sha256:" and the hex SHA-256 of C1(v). It panics on a value that C1
// refuses: parsed documents and those that From made are always fit; for any
// other take C1 and DigestBytes.
func Digest(v Value) string { return DigestBytes(mustEncode(C1(v))) }

// DigestBytes is the digest of a document that is in form C1 already.
func DigestBytes(c1 []byte) string { return "sha256:" + hexSum(c1) }

// DigestHexC2 is the bare hex SHA-256 of C2(v), as the gate family writes its
// digests. It panics like Digest.
func DigestHexC2(v Value) string { return hexSum(mustEncode(C2(v))) }

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func mustEncode(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// form holds the options in which the written forms differ.
type form struct {
	sorted bool // keys by code point, else in their own order
	ascii  bool // non-ASCII as escapes
	indent bool // two spaces a level
}

// firstSize is the room that a document gets before it is written: most are runs.
const firstSize = 1280

type writer struct {
	form
	out   []byte
	depth int
}

func writeValue(v Value, f form, end string) ([]byte, error) {
	w := &writer{form: f, out: make([]byte, 0, firstSize)}
	if err := w.value(v); err != nil {
		return nil, err
	}
	return append(w.out, end...), nil
}

func (w *writer) value(v Value) error {
	switch v := v.(type) {
	case nil:
		w.out = append(w.out, "null"...)
	case bool:
		w.out = strconv.AppendBool(w.out, v)
	case string:
		return w.str(v)
	case Int:
		w.out = append(w.out, v.String()...)
	case Float:
		return w.float(float64(v))
	case Raw:
		return w.raw(v)
	case Array:
		return w.array(v)
	case *Object:
		return w.object(v)
	default:
		conv, err := From(v)
		if err != nil {
			return err
		}
		return w.value(conv)
	}
	return nil
}

// raw writes a document that is in form C1. The other forms need its values.
func (w *writer) raw(r Raw) error {
	if w.form == (form{sorted: true}) {
		w.out = append(w.out, r...)
		return nil
	}
	v, err := Parse(r)
	if err != nil {
		return err
	}
	return w.value(v)
}

func (w *writer) open(c byte) error {
	if w.depth++; w.depth > MaxDepth {
		return fmt.Errorf("canon: arrays and objects are nested more than %d deep", MaxDepth)
	}
	w.out = append(w.out, c)
	return nil
}

func (w *writer) line() {
	if w.indent {
		w.out = append(w.out, '\n')
		for range w.depth {
			w.out = append(w.out, "  "...)
		}
	}
}

func (w *writer) close(c byte, empty bool) {
	w.depth--
	if !empty {
		w.line()
	}
	w.out = append(w.out, c)
}

func (w *writer) array(a Array) error {
	if err := w.open('['); err != nil {
		return err
	}
	for i, v := range a {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.line()
		if err := w.value(v); err != nil {
			return err
		}
	}
	w.close(']', len(a) == 0)
	return nil
}

func (w *writer) object(o *Object) error {
	if o == nil {
		w.out = append(w.out, "null"...)
		return nil
	}
	if err := w.open('{'); err != nil {
		return err
	}
	members := o.members
	if w.sorted {
		// Go compares strings by their UTF-8 bytes, which is the order of code points.
		byKey := func(a, b Member) int { return strings.Compare(a.Key, b.Key) }
		if !slices.IsSortedFunc(members, byKey) { // members parsed from form C1 are sorted already
			members = slices.Clone(members)
			slices.SortFunc(members, byKey)
		}
	}
	for i, m := range members {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.line()
		if err := w.str(m.Key); err != nil {
			return err
		}
		w.out = append(w.out, ':')
		if w.indent {
			w.out = append(w.out, ' ')
		}
		if err := w.value(m.Value); err != nil {
			return err
		}
	}
	w.close('}', len(members) == 0)
	return nil
}

// float writes the shortest digits that read back to f, always with a point or
// an exponent, so that a float never turns into an integer.
func (w *writer) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("canon: %v is no JSON number", f)
	}
	sci := strconv.AppendFloat(nil, f, 'e', -1, 64) // d.ddde±dd, exponent of two digits or more
	exp, err := strconv.Atoi(string(sci[bytes.IndexByte(sci, 'e')+1:]))
	if err != nil {
		return fmt.Errorf("canon: write %v: %w", f, err)
	}
	if exp < -4 || exp >= 16 {
		w.out = append(w.out, sci...)
		return nil
	}
	start := len(w.out)
	w.out = strconv.AppendFloat(w.out, f, 'f', -1, 64)
	if bytes.IndexByte(w.out[start:], '.') < 0 {
		w.out = append(w.out, ".0"...)
	}
	return nil
}

const hexDigits = "0123456789abcdef"

func (w *writer) str(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("canon: a string is not UTF-8")
	}
	w.out = append(w.out, '"')
	clean := 0 // start of the bytes that can be copied unchanged
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && (c < utf8.RuneSelf || !w.ascii) {
			i++
			continue
		}
		w.out = append(w.out, s[clean:i]...)
		r, n := utf8.DecodeRuneInString(s[i:])
		w.escape(r)
		i += n
		clean = i
	}
	w.out = append(w.out, s[clean:]...)
	w.out = append(w.out, '"')
	return nil
}

func (w *writer) escape(r rune) {
	switch r {
	case '"', '\\':
		w.out = append(w.out, '\\', byte(r))
	case '\b':
		w.out = append(w.out, '\\', 'b')
	case '\f':
		w.out = append(w.out, '\\', 'f')
	case '\n':
		w.out = append(w.out, '\\', 'n')
	case '\r':
		w.out = append(w.out, '\\', 'r')
	case '\t':
		w.out = append(w.out, '\\', 't')
	default:
		if r > 0xFFFF {
			hi, lo := utf16.EncodeRune(r)
			w.unit(hi)
			r = lo
		}
		w.unit(r)
	}
}

func (w *writer) unit(r rune) {
	w.out = append(w.out, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}
