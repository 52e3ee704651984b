package promotion

import (
	"bytes"
	"encoding/json"
	"slices"
)

// space is YAML's white space, and no more.
const space = " \t\r\n"

// hasSignature reports whether an MLmodel file names the inputs of its model, in any YAML that programs write: one key
// per line, braces, or JSON. It is not a YAML parser, which could use gigabytes for 50 kB of brackets in this process.
// Serving refuses what it gets wrong.
func hasSignature(text []byte) bool {
	if trimmed := bytes.TrimLeft(text, space); len(trimmed) > 0 && trimmed[0] == '{' { // JSON, which is YAML too
		var file struct {
			Signature *struct{ Inputs *string }
		}
		return json.Unmarshal(text, &file) == nil && file.Signature != nil && file.Signature.Inputs != nil && *file.Signature.Inputs != ""
	}
	inside, indent := false, 0
	at := 0
	for line := range bytes.Lines(text) {
		at += len(line)
		body := bytes.TrimLeft(line, " ")
		depth := len(line) - len(body)
		body = bytes.Trim(body, space)
		if len(body) == 0 || body[0] == '#' {
			continue
		}
		key, value, ok := cutKey(body)
		switch {
		case depth == 0 && ok && key == "signature":
			if inner, braces := bytes.CutPrefix(value, []byte("{")); braces {
				if bytes.IndexByte(inner, '}') < 0 { // closed on a later line
					inner = text[at-len(line)+bytes.IndexByte(line, '{')+1:]
				}
				return hasInputs(inner)
			}
			inside, indent = len(value) == 0, 0
		case depth == 0:
			inside = false
		case inside:
			if indent == 0 {
				indent = depth
			}
			if depth == indent && ok && key == "inputs" {
				return hasValue(value)
			}
		}
	}
	return false
}

// hasInputs looks for the key in a braced mapping on one line.
func hasInputs(braces []byte) bool {
	for _, name := range []string{"inputs:", `"inputs":`, "'inputs':"} {
		if at := bytes.Index(braces, []byte(name)); at >= 0 && (at == 0 || bytes.IndexByte([]byte(" ,{\n"), braces[at-1]) >= 0) {
			value := braces[at+len(name):]
			if end := bytes.IndexByte(value, '\n'); end >= 0 {
				value = value[:end]
			}
			return hasValue(bytes.Trim(bytes.TrimRight(value, "},"+space), space))
		}
	}
	return false
}

// cutKey splits a line at its first colon; the key may be quoted.
func cutKey(line []byte) (key string, value []byte, ok bool) {
	before, after, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(after) > 0 && after[0] != ' ' && after[0] != '\t' {
		return "", nil, false
	}
	const most = 64 // longer than any key that is looked for
	return string(bytes.Trim(before[:min(len(before), most)], ` "'`)), bytes.Trim(after, space), true
}

// hasValue reports whether a scalar holds any text.
func hasValue(scalar []byte) bool {
	switch {
	case len(scalar) == 0:
	case scalar[0] == '\'' || scalar[0] == '"':
		if bytes.HasPrefix(scalar[1:], scalar[:1]) && (len(scalar) == 2 || scalar[2] != scalar[0]) {
			return false // empty, whatever follows it
		}
	default:
		if i := bytes.IndexAny(scalar, ",}"); i >= 0 {
			scalar = scalar[:i]
		}
		if i := bytes.Index(scalar, []byte(" #")); i >= 0 {
			scalar = scalar[:i]
		}
		scalar = bytes.Trim(scalar, space)
	}
	return !slices.Contains([]string{"", "null", "~", "''", `""`, "Null", "NULL"}, string(scalar[:min(len(scalar), 8)]))
}
