package modelrepo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

func TestWithBusUUIDChangesOneLine(t *testing.T) {
	t.Parallel()
	const id = "7b0c5f4e-2f0a-4c8e-9a52-0d9b1f3f6a11"
	for name, c := range map[string]struct{ text, want string }{
		"after enabled":   {"name: A # first\nenabled: true # yes\ntype: regression\n", "name: A # first\nenabled: true # yes\nbus_uuid: " + id + "\ntype: regression\n"},
		"without enabled": {"# A model.\nname: A\ntype: regression\n", "# A model.\nname: A\nbus_uuid: " + id + "\ntype: regression\n"},
		"in its place":    {"name: A\nbus_uuid: 00000000-0000-4000-8000-000000000000   # of the queue\nenabled: true\n", "name: A\nbus_uuid: " + id + "   # of the queue\nenabled: true\n"},
		"empty":           {"name: A\nbus_uuid:\nenabled: true\n", "name: A\nbus_uuid: " + id + "\nenabled: true\n"},
		"quoted":          {"name: A\nbus_uuid: \"00000000-0000-4000-8000-000000000000\"\n", "name: A\nbus_uuid: " + id + "\n"},
		"the last line":   {"name: A\nenabled: true", "name: A\nenabled: true\nbus_uuid: " + id},
	} {
		m := modelrepo.Model{File: modelrepo.SourceFile{Path: "model.yaml", Bytes: []byte(c.text)}}
		if got, err := m.WithBusUUID(id); err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, c.want)
		}
	}
	for name, text := range map[string]string{
		"in one line":       "{name: A, enabled: true}\n",
		"inside of a text":  "inference:\n  note: |\n    x\nsplit: &a |\n\n  x\nenabled: >\n  true\n",
		"a nested one":      "inference:\n  bus_uuid: x\n",
		"a name over lines": "name:\n  A\n",
	} {
		m := modelrepo.Model{File: modelrepo.SourceFile{Path: "model.yaml", Bytes: []byte(text)}}
		if got, err := m.WithBusUUID(id); !errors.Is(err, modelrepo.ErrUnclear) || strings.Contains(string(got), id) {
			t.Errorf("%s: got %q, %v; want a refusal", name, got, err)
		}
	}
}
