package redact

import (
	"encoding/json"
	"strings"
)

// Value is the value of a variable, flag or setting, redacted whole if its name tells of a secret, else as [Text].
func Value(name, value string) string {
	if tellingVariable(name) && !plain(value) {
		return mark(len(value))
	}
	return Text(value)
}

// Object redacts in place an object of the API that is about to be shown: values of Secrets, environments, flags,
// annotations, settings with telling names, and all other text as [Text] does.
func Object(o map[string]any) {
	walk(o, false, maxDepth)
	show(o)
}

// show redacts the strings below m.
func show(m map[string]any) {
	settings := isKind(m, "ConfigMap")
	name, isName := m["name"].(string)
	for key, v := range m {
		switch v := v.(type) {
		case string:
			if key == "value" && isName {
				m[key] = Value(name, v)
				continue
			}
			m[key] = shown(key, v)
		case map[string]any:
			if key == "binaryData" {
				m[key], _ = values(v, true) // of a ConfigMap: what nobody can read may be a keystore
				continue
			}
			if key == "annotations" || settings && key == "data" {
				named(v)
				continue
			}
			if plural(key) {
				all(v)
			}
			show(v)
		case []any:
			if telling(key) {
				for i := range v {
					if text, ok := v[i].(string); ok {
						v[i] = shown(key, text)
					}
				}
			}
			m[key] = list(v)
		}
	}
}

// all redacts the strings of an object whose names only tell several secrets apart.
func all(m map[string]any) {
	for key, v := range m {
		if text, ok := v.(string); ok && !plain(text) {
			m[key] = mark(len(text))
		}
	}
}

// shown is a string member; that of an object such as secretName is only a name.
func shown(key, v string) string {
	if telling(key) && !plain(v) {
		return mark(len(v))
	}
	return Text(v)
}

// named redacts a map whose names are the user's own.
func named(m map[string]any) {
	for key, v := range m {
		switch v := v.(type) {
		case string:
			if key == lastApplied {
				m[key] = manifest(v)
				continue
			}
			m[key] = Value(key, v)
		case map[string]any:
			show(v)
		case []any:
			m[key] = list(v)
		}
	}
}

// list redacts entries; a flag may have its value in the next one.
func list(l []any) []any {
	flag := false
	for i, v := range l {
		switch v := v.(type) {
		case string:
			if flag && !strings.HasPrefix(v, "-") && !plain(v) {
				l[i] = mark(len(v))
			} else {
				l[i] = Text(v)
			}
			flag = strings.HasPrefix(v, "-") && !strings.Contains(v, "=") && tellingVariable(v)
			continue
		case map[string]any:
			show(v)
		case []any:
			l[i] = list(v)
		}
		flag = false
	}
	return l
}

// manifest redacts an object that is kept as text.
func manifest(s string) string {
	var o map[string]any
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	if err := dec.Decode(&o); err != nil || dec.More() {
		return Text(s)
	}
	Object(o)
	redacted, err := json.Marshal(o)
	if err != nil { // cannot happen: it was JSON
		return mark(len(s))
	}
	return string(redacted)
}
