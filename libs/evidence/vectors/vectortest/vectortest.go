// Package vectortest reads the shared vectors for tests.
package vectortest

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/vectors"
)

// Input is the document of a vector, in whichever of the three spellings.
type Input struct {
	Name string   `json:"name"`
	Text *string  `json:"input"`
	Hex  string   `json:"input_hex"`
	Runs [][2]any `json:"input_runs"`
}

// Bytes returns the document.
func (in Input) Bytes(t testing.TB) []byte {
	t.Helper()
	switch {
	case in.Text != nil:
		return []byte(*in.Text)
	case in.Hex != "":
		b, err := hex.DecodeString(in.Hex)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var b strings.Builder
	for _, run := range in.Runs {
		b.WriteString(strings.Repeat(run[0].(string), int(run[1].(float64))))
	}
	return []byte(b.String())
}

// Load reads the vector file of this name into v.
func Load(t testing.TB, name string, v any) {
	t.Helper()
	data, err := vectors.FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
