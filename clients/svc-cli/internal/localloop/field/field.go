// Package field reads the fields that the documents of a local loop share: ids,
// digests, times, lists, globs. Every list is closed and bounded by the size of its
// file; what a document leaves open is taken as it is.
package field

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// The codes of a fault in one of these documents.
const (
	InvalidJSON    = "invalid_json"
	NotAnObject    = "not_an_object"
	Missing        = "missing_field"
	Unknown        = "unknown_field"
	InvalidType    = "invalid_type"
	InvalidValue   = "invalid_value"
	DuplicateValue = "duplicate_value"
)

// NewReader starts on a document.
func NewReader() *closed.Reader {
	return closed.NewReader(closed.Codes{
		Missing: Missing, Unknown: Unknown, Root: NotAnObject, Shape: InvalidType, Type: InvalidType, Value: InvalidValue,
	})
}

// With adds to the keys that must stand those of optional that do stand in v, so
// that a closed object can have keys that may be absent.
func With(v canon.Value, keys []string, optional ...string) []string {
	o, _ := v.(*canon.Object)
	out := append([]string{}, keys...)
	for _, k := range optional {
		if _, ok := o.Get(k); ok {
			out = append(out, k)
		}
	}
	return out
}

// Parse reads one document of at most canon.MaxFile bytes. A fault is a *closed.Fault.
func Parse(data []byte) (*canon.Object, error) {
	v, err := canon.Parse(data, canon.MaxBytes(canon.MaxFile), canon.ObjectRoot())
	if err != nil {
		var syntax *canon.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &closed.Fault{Code: string(syntax.Reason), Path: syntax.Path, Detail: syntax.Detail}
		}
		return nil, err
	}
	return v.(*canon.Object), nil
}

// Identifier reads an identifier.
func Identifier(o closed.Object, key string) string {
	return o.Match(key, InvalidValue, "an identifier", spine.IsIdentifier)
}

// Digest reads a digest.
func Digest(o closed.Object, key string) string {
	return o.Match(key, InvalidValue, `"sha256:" and 64 lower-case hex digits`, spine.IsDigest)
}

// Revision reads a source revision; upper-case hex digits become lower case.
func Revision(o closed.Object, key string) string {
	return strings.ToLower(o.Match(key, InvalidValue, "a revision of 40 or 64 hex digits", func(s string) bool {
		return spine.IsRevision(strings.ToLower(s))
	}))
}

// Time reads an instant: YYYY-MM-DDThh:mm:ss[.frac]Z.
func Time(o closed.Object, key string) string {
	return o.Match(key, InvalidValue, "a time such as 2026-01-02T03:04:05Z", spine.IsTimestamp)
}

// Path reads a path within a folder that the document stands for.
func Path(o closed.Object, key string) string {
	return o.Match(key, InvalidValue, pathWhat, IsPath)
}

const pathWhat = "a relative path with / between its parts and without . or .."

// MaxPath is how many characters a path may have.
const MaxPath = 1024

// IsPath says that s is a path within a folder in the one spelling that names it:
// relative, / between its parts, no empty part, no . and no .., nothing that cannot
// be shown or that another system reads differently.
func IsPath(s string) bool {
	return s != "." && utf8.RuneCountInString(s) <= MaxPath && fs.ValidPath(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 || r == 0x7f || r == '\\' || r == ':'
	})
}

// readList calls each with every element of an array of least or more.
func readList(o closed.Object, key string, least int, each func(v canon.Value, path string) string) []string {
	out := []string{}
	o.Array(key, least, func(v canon.Value, path string) { out = append(out, each(v, path)) })
	return out
}

// Texts reads an array of strings that are not empty.
func Texts(r *closed.Reader, o closed.Object, key string, least int) []string {
	return readList(o, key, least, r.Text)
}

// Strings reads an array of strings of any content.
func Strings(r *closed.Reader, o closed.Object, key string, least int) []string {
	return readList(o, key, least, r.String)
}

// Unique reads an array of distinct strings that accept takes.
func Unique(r *closed.Reader, o closed.Object, key string, least int, what string, accept func(string) bool) []string {
	seen := map[string]bool{}
	return readList(o, key, least, func(v canon.Value, path string) string {
		s := r.Match(v, path, InvalidValue, what, accept)
		Once(r, seen, s, path)
		return s
	})
}

// Identifiers reads an array of distinct identifiers.
func Identifiers(r *closed.Reader, o closed.Object, key string, least int) []string {
	return Unique(r, o, key, least, "an identifier", spine.IsIdentifier)
}

// Paths reads an array of distinct paths.
func Paths(r *closed.Reader, o closed.Object, key string, least int) []string {
	return Unique(r, o, key, least, pathWhat, IsPath)
}

// Once refuses a value that was seen before.
func Once(r *closed.Reader, seen map[string]bool, s, path string) {
	if seen[s] {
		r.Fail(DuplicateValue, path, "an earlier one is the same")
	}
	seen[s] = true
}

// Bounds of a glob, so that matching one costs little whatever it is.
const (
	maxGlob        = 256
	maxAlternation = 4
)

// Globs reads an array of distinct patterns of paths, with * ? ** [class] {a,b}. One with
// an empty part or a dot for a part would match no path, so that a rule would say nothing.
func Globs(r *closed.Reader, o closed.Object, key string) []string {
	return Unique(r, o, key, 0, "a pattern of paths", func(s string) bool {
		return s != "" && utf8.RuneCountInString(s) <= maxGlob && strings.Count(s, "{") <= maxAlternation && doublestar.ValidatePattern(s) && !hasDotPart(s)
	})
}

// hasDotPart says that a part of a pattern before a final slash is empty, "." or "..".
func hasDotPart(glob string) bool {
	return slices.ContainsFunc(strings.Split(strings.TrimSuffix(glob, "/"), "/"), func(part string) bool {
		return part == "" || part == "." || part == ".."
	})
}

// Open reads what the contract leaves open: a string that is not empty, or an object
// of any keys.
func Open(r *closed.Reader, v canon.Value, path string) {
	switch v := v.(type) {
	case *canon.Object:
	case string:
		if v == "" {
			r.Fail(InvalidValue, path, "the string must not be empty")
		}
	default:
		r.Fail(InvalidType, path, "a string or an object must stand here")
	}
}

// Opens reads an array whose elements are open.
func Opens(r *closed.Reader, o closed.Object, key string, least int) {
	o.Array(key, least, func(v canon.Value, path string) { Open(r, v, path) })
}

// Map reads an object of any keys.
func Map(o closed.Object, key string) *canon.Object {
	m, ok := o.Value(key).(*canon.Object)
	if !ok {
		o.Fail(InvalidType, key, "an object must stand here")
	}
	return m
}

// Number reads a number of zero or more, whole or not.
func Number(o closed.Object, key string) {
	switch n := o.Value(key).(type) {
	case canon.Int:
		if n.Sign() < 0 {
			o.Fail(InvalidValue, key, "a number of 0 or more must stand here")
		}
	case canon.Float:
		if n < 0 {
			o.Fail(InvalidValue, key, "a number of 0 or more must stand here")
		}
	default:
		o.Fail(InvalidType, key, "a number must stand here")
	}
}

// Equal says that two values are the same document: the same type and content at
// every place, in whatever order the keys came.
func Equal(a, b canon.Value) bool {
	x, errX := canon.C1(a)
	y, errY := canon.C1(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
