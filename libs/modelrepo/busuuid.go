package modelrepo

import (
	"errors"
	"maps"
	"reflect"
	"regexp"

	"github.com/goccy/go-yaml"
)

// ErrUnclear means that a definition is written in a way that cannot be changed line by line.
var ErrUnclear = errors.New("the definition is written in a way that cannot be changed by line")

var (
	uuidLine = lazyPattern(`(?m)^bus_uuid:[ \t]*[^\s#]*([ \t]*(?:#.*)?\r?)$`)
	// anchorLines are those after which the UUID goes, the better place first.
	anchorLines = []func() *regexp.Regexp{lazyPattern(`(?m)^enabled:.*$`), lazyPattern(`(?m)^name:.*$`)}
)

// WithBusUUID returns the text of the model's definition with another UUID on the message bus: in its line, or in a new
// one after enabled. All else stays as it is, comments included. The error is [ErrUnclear].
func (m *Model) WithBusUUID(id string) ([]byte, error) {
	text := string(m.File.Bytes)
	changed := ""
	if uuidLine().MatchString(text) {
		changed = uuidLine().ReplaceAllString(text, "bus_uuid: "+id+"$1")
	} else {
		for _, line := range anchorLines {
			if at := line().FindStringIndex(text); at != nil {
				changed = text[:at[1]] + "\nbus_uuid: " + id + text[at[1]:]
				break
			}
		}
	}
	// YAML has notations that lines do not show, such as a text over several of them: the result must have the same
	// content as before but for this.
	var before, after map[string]any
	if yaml.Unmarshal(m.File.Bytes, &before) != nil || yaml.Unmarshal([]byte(changed), &after) != nil || after["bus_uuid"] != id {
		return nil, ErrUnclear
	}
	maps.DeleteFunc(before, isBusUUID)
	maps.DeleteFunc(after, isBusUUID)
	if !reflect.DeepEqual(before, after) {
		return nil, ErrUnclear
	}
	return []byte(changed), nil
}

func isBusUUID(name string, _ any) bool { return name == "bus_uuid" }
