package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
)

// Limits of a tool's description.
const (
	maxSchema      = 8 << 10 // bytes
	maxDepth       = 16
	maxAbout       = 300 // characters of a description
	maxMemberAbout = 160 // characters of a description within a schema
	maxMember      = 64  // characters of the name of an argument
)

// cleanSchema checks the schema of a tool's arguments and removes unknown parts: raw is for a model, and resolved
// checks arguments.
func cleanSchema(plain []byte) (raw json.RawMessage, resolved *jsonschema.Resolved, err error) {
	if len(plain) > maxSchema {
		return nil, nil, fmt.Errorf("its schema is over %d bytes", maxSchema)
	}
	var members map[string]any
	if json.Unmarshal(plain, &members) != nil || members["type"] != "object" {
		return nil, nil, errors.New("its arguments are no object")
	}
	if err := cleanMembers(members, 0); err != nil {
		return nil, nil, err
	}
	if err := checkReferences(members); err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(members); err != nil {
		return nil, nil, errors.New("its schema cannot be read")
	}
	raw = bytes.TrimSpace(out.Bytes())
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, nil, errors.New("its schema is no JSON Schema")
	}
	if resolved, err = schema.Resolve(nil); err != nil {
		return nil, nil, errors.New("its schema is no JSON Schema")
	}
	return raw, resolved, nil
}

// cleanMembers cleans the descriptions in a schema in place.
func cleanMembers(members map[string]any, depth int) error {
	if depth > maxDepth {
		return errors.New("its schema is nested too deeply")
	}
	for _, name := range []string{"$comment", "$schema", "$id", "examples"} {
		if _, isSchema := members[name].(map[string]any); !isSchema { // otherwise it is an argument of that name
			delete(members, name)
		}
	}
	for name, v := range members {
		if name != cleanLine(name, maxMember) || name == "" {
			return errors.New("an argument has a name that cannot be shown")
		}
		switch v := v.(type) {
		case string:
			most := maxSchema
			if name == "description" || name == "title" {
				most = maxMemberAbout
			}
			text := cleanLine(v, most)
			if most == maxSchema && text != v {
				return errors.New("its schema has text that cannot be shown")
			}
			members[name] = text
		case map[string]any:
			if err := cleanMembers(v, depth+1); err != nil {
				return err
			}
		case []any:
			if err := cleanList(v, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func cleanList(list []any, depth int) error {
	for _, v := range list {
		var err error
		switch v := v.(type) {
		case string:
			if v != cleanLine(v, maxSchema) {
				err = errors.New("its schema has text that cannot be shown")
			}
		case map[string]any:
			err = cleanMembers(v, depth)
		case []any:
			if depth > maxDepth {
				return errors.New("its schema is nested too deeply")
			}
			err = cleanList(v, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cleanLine returns a text on one line without control and invisible characters, truncated to a number of characters.
func cleanLine(text string, most int) string {
	return cutRunes(strings.Join(strings.Fields(cleanText(text)), " "), most)
}

// cleanText removes control and invisible characters other than tabs and line feeds.
func cleanText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

func cutRunes(text string, most int) string {
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
