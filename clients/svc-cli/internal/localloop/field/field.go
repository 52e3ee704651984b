// Package field reads the fields that the documents of a local loop share: ids, digests, times, lists, globs. Every
// list is closed and limited by the size of its file; parts that a document leaves open are accepted unchecked.
package field

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/shape"
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

// Codes are the codes of every fault of shape.
var Codes = shape.Codes{
	Codes:     closed.Codes{Missing: Missing, Unknown: Unknown, Root: NotAnObject, Shape: InvalidType, Type: InvalidType, Value: InvalidValue},
	Duplicate: DuplicateValue,
}

// NewReader starts on a document.
func NewReader() *closed.Reader { return closed.NewReader(Codes.Codes) }

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

// Path reads a path within the document's folder.
func Path(o closed.Object, key string) string {
	return o.Match(key, InvalidValue, "a relative path with / between its parts and without . or ..", IsPath)
}

// MaxPath limits the characters of a path.
const MaxPath = 1024

// IsPath reports whether s is a path within a folder in its one canonical spelling: relative, / between its parts, no
// empty part, no . and no .., nothing that cannot be shown or that another system reads differently.
func IsPath(s string) bool {
	return s != "." && utf8.RuneCountInString(s) <= MaxPath && fs.ValidPath(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 || r == 0x7f || r == '\\' || r == ':'
	})
}

// Once refuses a value that was seen before.
func Once(r *closed.Reader, seen map[string]bool, s, path string) {
	if seen[s] {
		r.Fail(DuplicateValue, path, "an earlier one is the same")
	}
	seen[s] = true
}

// Limits of a glob, so that matching any glob is cheap.
const (
	maxGlob        = 256
	maxAlternation = 4
)

// CheckGlobs refuses invalid patterns of paths, with * ? ** [class] {a,b}. One with an empty part or a dot for a part
// would match no path, so that a rule would have no effect.
func CheckGlobs(r *closed.Reader, path string, globs []string) {
	for i, s := range globs {
		if !IsGlob(s) {
			r.Fail(InvalidValue, canon.Element(path, i), "expected a pattern of paths")
		}
	}
}

// IsGlob reports whether s is a pattern of paths.
func IsGlob(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= maxGlob && strings.Count(s, "{") <= maxAlternation && doublestar.ValidatePattern(s) && !hasDotPart(s)
}

// hasDotPart reports whether a part of a pattern before a final slash is empty, "." or "..".
func hasDotPart(glob string) bool {
	return slices.ContainsFunc(strings.Split(strings.TrimSuffix(glob, "/"), "/"), func(part string) bool {
		return part == "" || part == "." || part == ".."
	})
}

// Equal reports whether two values are the same document: the same type and content at every place, whatever the order
// of the keys.
func Equal(a, b canon.Value) bool {
	x, errX := canon.C1(a)
	y, errY := canon.C1(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
