package redact

import (
	"encoding/json"
	"slices"
	"strings"
)

// Value is the value of a variable, flag or setting, redacted whole if its name tells of a secret or its shape is that of a
// key, else as [Text].
func Value(name, value string) string {
	if tellingVariable(name) && !isPlainValue(value) || isKeyMaterial(value) && !namesPublic(name) {
		return redactionMark(len(value))
	}
	return Text(value)
}

// Object redacts in place an object of the API that is about to be shown: values of Secrets, environments, flags,
// annotations, settings with telling names, and all other text as [Text] does.
func Object(o map[string]any) {
	secretWalk{}.walkSecrets(o, false, maxDepth)
	redactMembers(o)
}

// redactMembers redacts the strings below m.
func redactMembers(m map[string]any) {
	settings := isKind(m, "ConfigMap")
	name, isName := m["name"].(string)
	for key, v := range m {
		switch v := v.(type) {
		case string:
			if key == "value" && isName {
				m[key] = Value(name, v)
				continue
			}
			m[key] = redactMember(key, v)
		case map[string]any:
			if key == "binaryData" {
				m[key], _ = secretWalk{}.redactValues(v, true) // of a ConfigMap: what nobody can read may be a keystore
				continue
			}
			if key == "annotations" || settings && key == "data" {
				redactNamed(v)
				continue
			}
			if isPluralName(key) {
				redactAll(v)
			}
			redactMembers(v)
		case []any:
			if isTellingName(key) {
				for i := range v {
					if text, ok := v[i].(string); ok {
						v[i] = redactMember(key, text)
					}
				}
			}
			m[key] = redactList(v)
		}
	}
}

// redactAll redacts the strings of an object whose names only tell several secrets apart.
func redactAll(m map[string]any) {
	for key, v := range m {
		if text, ok := v.(string); ok && !isPlainValue(text) {
			m[key] = redactionMark(len(text))
		}
	}
}

// redactMember is a string member; that of an object such as secretName is only a name.
func redactMember(key, v string) string {
	if isTellingName(key) && !isPlainValue(v) {
		return redactionMark(len(v))
	}
	return Text(v)
}

// redactNamed redacts a map whose names are the user's own.
func redactNamed(m map[string]any) {
	for key, v := range m {
		switch v := v.(type) {
		case string:
			if key == lastApplied {
				m[key] = redactManifest(v)
				continue
			}
			m[key] = Value(key, v)
		case map[string]any:
			redactMembers(v)
		case []any:
			m[key] = redactList(v)
		}
	}
}

// redactList redacts entries; a flag may have its value in the next one.
func redactList(l []any) []any {
	flag := false
	for i, v := range l {
		switch v := v.(type) {
		case string:
			if flag && !strings.HasPrefix(v, "-") && !isPlainValue(v) {
				l[i] = redactionMark(len(v))
			} else {
				l[i] = Text(v)
			}
			flag = strings.HasPrefix(v, "-") && !strings.Contains(v, "=") && tellingVariable(v)
			continue
		case map[string]any:
			redactMembers(v)
		case []any:
			l[i] = redactList(v)
		}
		flag = false
	}
	return l
}

// redactManifest redacts an object that is kept as text.
func redactManifest(s string) string {
	var o map[string]any
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	if err := dec.Decode(&o); err != nil || dec.More() {
		return Text(s)
	}
	Object(o)
	redacted, err := json.Marshal(o)
	if err != nil { // cannot happen: it was JSON
		return redactionMark(len(s))
	}
	return string(redacted)
}

// HoldsMark reports whether a value of the API, or any value in it, was redacted.
func HoldsMark(v any) bool {
	switch v := v.(type) {
	case string:
		return markExpr.MatchString(v)
	case map[string]any:
		for _, inner := range v {
			if HoldsMark(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, HoldsMark)
	}
	return false
}
