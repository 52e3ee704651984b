package redact

import (
	"encoding/json"
	"slices"
	"strings"
)

// Value redacts the value of a variable, flag or setting: entirely if its name or its shape marks it as a secret,
// otherwise like [Text].
func Value(name, value string) string {
	if tellingVariable(name) && !isPlainValue(value) || isKeyMaterial(value) && !namesPublic(name) {
		return redactionMark(len(value))
	}
	return Text(value)
}

// Object redacts in place an API object that is about to be shown: values of Secrets, environments, flags, annotations,
// settings with telling names, and all other text as [Text] does.
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
				m[key], _ = secretWalk{}.redactValues(v, true) // of a ConfigMap: binary data may be a keystore
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

// redactAll redacts the strings of an object whose names only distinguish several secrets.
func redactAll(m map[string]any) {
	for key, v := range m {
		if text, ok := v.(string); ok && !isPlainValue(text) {
			m[key] = redactionMark(len(text))
		}
	}
}

// redactMember redacts a string member; that of an object such as secretName is only a name.
func redactMember(key, v string) string {
	if isTellingName(key) && !isPlainValue(v) {
		return redactionMark(len(v))
	}
	return Text(v)
}

// redactNamed redacts a map with user-defined names.
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

// redactManifest redacts an object that is stored as text.
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
