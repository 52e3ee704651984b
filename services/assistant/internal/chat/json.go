package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/problem"
)

// maxFaults limits the faults reported for one request.
const maxFaults = 8

// faults are the errors in a request, by location.
type faults struct{ list []problem.Field }

func (f *faults) add(loc []string, msg string) {
	if len(f.list) < maxFaults {
		f.list = append(f.list, problem.Field{Loc: slices.Clone(loc), Msg: msg})
	}
}

// text reads a string. Null counts as absent.
func (f *faults) text(loc []string, value json.RawMessage, into *string) {
	if isNull(value) {
		return
	}
	if value[0] != '"' || json.Unmarshal(value, into) != nil {
		f.add(loc, "must be a string")
		return
	}
	// PostgreSQL stores no NUL in text.
	*into = strings.ReplaceAll(*into, "\x00", "\uFFFD")
}

// flag reads true or false. Null counts as absent.
func (f *faults) flag(loc []string, value json.RawMessage, into *bool) {
	switch string(value) {
	case "true", "false":
		*into = value[0] == 't'
	case "null":
	default:
		f.add(loc, "must be true or false")
	}
}

func isNull(value json.RawMessage) bool { return string(value) == "null" }

func elementPath(loc []string, i int) []string { return append(slices.Clone(loc), strconv.Itoa(i)) }

// eachMember calls fn with the members of an object in their order, and reports whether raw, which is valid JSON, is an
// object. Each value is valid only during the call: a document with very many members needs no memory beyond its own.
func eachMember(raw []byte, fn func(name string, value json.RawMessage)) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	var value json.RawMessage
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok || d.Decode(&value) != nil {
			return false
		}
		fn(name, value)
	}
	return true
}

// eachElement is eachMember for a list; fn ends the iteration by returning false.
func eachElement(raw []byte, fn func(i int, value json.RawMessage) bool) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return false
	}
	var value json.RawMessage
	for i := 0; d.More(); i++ {
		if d.Decode(&value) != nil {
			return false
		}
		if !fn(i, value) {
			break
		}
	}
	return true
}
