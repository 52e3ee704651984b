package redact

import (
	"regexp"
	"strings"
)

// doubledField matches the beginning of a CSV field, up to the first of its doubled quotes, that contains JSON or a
// name and its value. Since an empty string in JSON is two quotes as well, the field has to begin as nothing in JSON
// does.
var doubledField = regexp.MustCompile(`^"(?:\s*[\[{][\[{\s]*|[\pL\w .-]{1,80}[=:][ \t]?)""(?:[^",:}\]\s]|"")`)

// findDoubledFields returns the text inside the quotes of such fields.
func findDoubledFields(s string) (fields []span) {
	if !strings.Contains(s, `""`) {
		return nil
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '"' || !doubledField.MatchString(s[i:min(len(s), i+512)]) {
			continue
		}
		f := span{from: i + 1, to: len(s)}
		for i++; i < len(s); i++ {
			if s[i] != '"' {
				continue
			}
			if i+1 == len(s) || s[i+1] != '"' {
				f.to = i
				break
			}
			i++
		}
		fields = append(fields, f)
	}
	return fields
}
