package trackerd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/mlp-platform/platform/libs/problem"
)

// decodeRequest reads the parameters of a request: of a GET from its query, else from
// its JSON body, and from its path. Unknown ones are let pass, as a real server
// does, so that newer clients work.
func decodeRequest(r *http.Request, dst any) error {
	into := reflect.ValueOf(dst).Elem()
	if r.Method == http.MethodGet {
		if err := decodeQuery(r.URL.Query(), into); err != nil {
			return err
		}
		return decodePath(r, into)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return err
		}
		if coding := (*problem.Error)(nil); errors.As(err, &coding) {
			return &refusal{coding.Kind.Status, "INVALID_PARAMETER_VALUE", coding.Detail}
		}
		return invalidParameter("The request body ended early: %v", err)
	}
	if len(bytes.TrimSpace(b)) > 0 {
		// This also keeps out forms of foreign pages.
		if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != "application/json" {
			return invalidParameter("Bad Request. Content-Type must be one of ['application/json'].")
		}
		if err := decodeBody(b, into); err != nil {
			return err
		}
	}
	return decodePath(r, into)
}

func decodeBody(b []byte, into reflect.Value) error {
	var raw json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return invalidParameter("The request body is not JSON: %v.", err)
	}
	if t := jsonType(raw); t != "dict" {
		return invalidParameter("The request body must be a JSON object; it is of type '%s'.", t)
	}
	return decodeParam("", raw, into)
}

// decodeQuery reads a query; a parameter with a list as its target may occur more than once.
func decodeQuery(q url.Values, into reflect.Value) error {
	return eachParam(into, func(name string, v reflect.Value) error {
		values, ok := q[name]
		if !ok {
			return nil
		}
		var from any = values[0]
		if v.Kind() == reflect.Slice {
			from = values
		}
		raw, err := json.Marshal(from)
		if err != nil {
			return err
		}
		return decodeParam(name, raw, v)
	})
}

// decodePath lets the identifiers in the path win over those in the body.
func decodePath(r *http.Request, into reflect.Value) error {
	return eachParam(into, func(name string, v reflect.Value) error {
		if id := r.PathValue(name); id != "" {
			v.SetString(id)
		}
		return nil
	})
}

// eachParam calls fn with the name on the wire of every member of a struct, those of embedded structs among them.
func eachParam(v reflect.Value, fn func(string, reflect.Value) error) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		var err error
		if name == "" && f.Anonymous {
			err = eachParam(v.Field(i), fn)
		} else {
			err = fn(name, v.Field(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var rawType = reflect.TypeFor[json.RawMessage]()

// decodeParam reads raw into v. It descends into lists itself instead of leaving that to encoding/json, since a refusal
// must name the parameter as on the wire, with its index; encoding/json names the Go types around it.
func decodeParam(at string, raw json.RawMessage, v reflect.Value) error {
	if string(raw) == "null" { // absent, to protobuf
		return nil
	}
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decodeParam(at, raw, v.Elem())
	case v.Kind() == reflect.Struct:
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return wrongType(at, raw)
		}
		if at != "" {
			at += "."
		}
		return eachParam(v, func(name string, v reflect.Value) error {
			if m, ok := members[name]; ok {
				return decodeParam(at+name, m, v)
			}
			return nil
		})
	case v.Kind() == reflect.Slice && v.Type() != rawType:
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return wrongType(at, raw)
		}
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			err := decodeParam(fmt.Sprintf("%s[%d]", at, i), item, v.Index(i))
			if err != nil && v.Type().Elem().Kind() != reflect.Struct {
				return wrongType(at, raw) // the interface names a list of plain values as a whole
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if json.Unmarshal(raw, v.Addr().Interface()) != nil {
		return wrongType(at, raw)
	}
	return nil
}

// wrongType refuses a value in the words of the interface, its blanks too, for clients that compare them.
func wrongType(param string, raw json.RawMessage) error {
	return invalidValue(param, raw, " Hint: Value was of type '%s'. See the API docs for more information about request parameters.", jsonType(raw))
}

// invalidValue refuses a parameter, named as on the wire, for the reason given.
func invalidValue(param string, value any, format string, a ...any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	return invalidParameter("Invalid value %s for parameter '%s' supplied: %s", clipValue(strings.TrimSpace(text.String())), param, fmt.Sprintf(format, a...))
}

// jsonType names the type of a value as the interface does, by Python's words.
func jsonType(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || raw[0] == 'n':
		return "NoneType"
	case raw[0] == '{':
		return "dict"
	case raw[0] == '[':
		return "list"
	case raw[0] == '"':
		return "str"
	case raw[0] == 't' || raw[0] == 'f':
		return "bool"
	case bytes.ContainsAny(raw, ".eE"):
		return "float"
	}
	return "int"
}
