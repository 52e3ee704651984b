package output

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// Selection is the part of a JSON document that is printed: fields of its objects, then the results of a jq expression.
type Selection struct {
	fields []string
	query  *gojq.Code
}

// NewSelection reads the fields, separated by commas, and the expression; either may be empty.
func NewSelection(fields, expression string) (*Selection, error) {
	var s Selection
	for name := range strings.SplitSeq(fields, ",") {
		if name = strings.TrimSpace(name); name != "" {
			s.fields = append(s.fields, name)
		}
	}
	if expression != "" {
		query, err := gojq.Parse(expression)
		if err != nil {
			return nil, err
		}
		if s.query, err = gojq.Compile(query); err != nil { // without the environment: it holds credentials
			return nil, err
		}
	}
	return &s, nil
}

// UnknownFieldError reports a field that the objects of a document do not have.
type UnknownFieldError struct {
	Field string
	Known []string
}

func (e *UnknownFieldError) Error() string { return "there is no field " + e.Field }

// apply selects from a document of one line. The result is one document, or with an expression a line for each result, of
// which texts are printed as they are.
func (s *Selection) apply(ctx context.Context, document []byte) ([]byte, error) {
	if len(s.fields) > 0 {
		var err error
		if document, err = s.cut(document); err != nil {
			return nil, err
		}
	}
	if s.query == nil {
		return document, nil
	}
	dec := json.NewDecoder(bytes.NewReader(document))
	dec.UseNumber() // integers beyond 2^53 stay exact
	var input any
	if err := dec.Decode(&input); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for results := s.query.RunWithContext(ctx, input); ; {
		result, more := results.Next()
		if !more {
			return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
		}
		switch result := result.(type) {
		case error:
			if halt := (*gojq.HaltError)(nil); errors.As(result, &halt) && halt.Value() == nil {
				return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
			}
			return nil, fmt.Errorf("the expression failed: %w", result)
		case string:
			out.WriteString(result)
		default:
			line, err := gojq.Marshal(result)
			if err != nil {
				return nil, err
			}
			out.Write(line)
		}
		out.WriteByte('\n')
	}
}

// cut keeps the fields of an object, or of each object of a list, also where the list is the items of an envelope.
func (s *Selection) cut(document []byte) ([]byte, error) {
	var items []json.RawMessage
	if json.Unmarshal(document, &items) == nil {
		for i := range items {
			var err error
			if items[i], err = s.cut(items[i]); err != nil {
				return nil, err
			}
		}
		return json.Marshal(items)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(document, &object); err != nil {
		return nil, &UnknownFieldError{Field: s.fields[0]} // neither a list nor an object
	}
	if list, more := object["items"], object["more"]; len(object) == 2 && list != nil && more != nil {
		cut, err := s.cut(list)
		return fmt.Appendf(nil, `{"items":%s,"more":%s}`, cut, more), err
	}
	var out bytes.Buffer
	for i, name := range s.fields {
		value, ok := object[name]
		if !ok {
			known := make([]string, 0, len(object))
			for k := range object {
				known = append(known, k)
			}
			slices.Sort(known)
			return nil, &UnknownFieldError{name, known}
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		out.WriteByte("{,"[min(i, 1)])
		fmt.Fprintf(&out, "%s:%s", key, value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
