package promotion

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// mlflowFile is a file as MLflow writes it; its writer folds long lines.
const mlflowFile = `artifact_path: model
flavors:
  onnx:
    data: model.onnx
model_uuid: 0123
signature:
  inputs: '[{"type": "double", "name": "sepal length (cm)", "required": true}, {"type":
    "double", "name": "sepal width (cm)", "required": true}]'
  outputs: null
  params: null
utc_time_created: '2024-01-01 00:00:00.000000'
`

func TestHasSignature(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		mlflowFile:                                               true,
		"signature:\n  inputs: '[]'\n":                           true,
		"signature: {inputs: '[]'}\n":                            true,
		"signature: {\"inputs\": \"[]\"}\n":                      true,
		"signature:\n    outputs: a\n    inputs: |\n      []\n":  true,
		"signature:\r\n  inputs: '[]'\r\n":                       true,
		"signature:\n  # why\n\n  inputs: x":                     true,
		"":                                                       false,
		"signature: null\n":                                      false,
		"signature:\n  inputs: null\n":                           false,
		"signature:\n  inputs: ''\n":                             false,
		"signature:\n  inputs:\n  outputs: a\n":                  false,
		"signature:\n  outputs:\n    inputs: x\n":                false,
		"signature:\n  outputs: x\nother:\n  inputs: x\n":        false,
		"other:\n  signature:\n    inputs: x\n":                  false,
		"inputs: x\n":                                            false,
		"signature: {outputs: x}\n":                              false,
		"signature: {\n  inputs: '[]',\n  outputs: x\n}\n":       true,
		"{\"flavors\": {}, \"signature\": {\"inputs\": \"[]\"}}": true,
		"{\"signature\": {\"outputs\": \"[]\"}}":                 false,
		"signature: {inputs: null, outputs: '[]'}\n":             false,
		"signature: {inputs: '', outputs: '[]'}\n":               false,
		"signature:\n  inputs: null # none\n":                    false,
		"signature:\n  inputs: '' # none\n":                      false,
	} {
		if got := hasSignature([]byte(text)); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// A description that a YAML parser would unfold to gigabytes costs the gate no more than its size.
func TestHostileDescriptionsAreReadCheaply(t *testing.T) {
	for _, part := range []string{"[", "{a: ", "- ", "? ", "&a ", "!!x ", "signature: {", " signature:\n"} {
		text := []byte(strings.Repeat(part, 50_000))
		hostiletest.CheckAllocation(t, 1<<20, func() {
			if hasSignature(text) {
				t.Errorf("%.20q has a signature; want none", text)
			}
		})
	}
}

// FuzzHasSignature: a signature written by a YAML writer is found, any bytes cost no more than their size, and a
// signature without inputs does not count.
func FuzzHasSignature(f *testing.F) {
	f.Add([]byte(mlflowFile), `[{"type": "double"}]`)
	f.Add([]byte("signature: {inputs: [}\n"), "")
	f.Add([]byte("- signature:\n"), "a\nb: 'c'")
	f.Fuzz(func(t *testing.T, text []byte, inputs string) {
		hostiletest.CheckAllocation(t, 1<<20, func() { hasSignature(text) })
		written, err := yaml.Marshal(map[string]any{"flavors": map[string]any{"onnx": "x"}, "signature": map[string]any{"inputs": inputs, "outputs": nil}})
		if err != nil {
			return // it cannot be written
		}
		var back struct{ Signature struct{ Inputs string } }
		if yaml.Unmarshal(written, &back) != nil || back.Signature.Inputs != inputs {
			return // the writer lost it: it leaves white space such as a tab unquoted
		}
		if got := hasSignature(written); got != (inputs != "") {
			t.Fatalf("%q: got %v, want %v", written, got, inputs != "")
		}
	})
}
