package runtime_test

import (
	"io/fs"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// outside is a model that adds two constants to its input, which it keeps in other files: entries are key and value.
func outside(t *testing.T, constants ...[]string) []byte {
	t.Helper()
	b := graph.New("g", "test", "1")
	sum := b.Input("x", graph.Float, -1, 1)
	for i := range constants {
		sum = b.Node("Add", "sum"+string(rune('a'+i)), []string{sum, b.Floats("c"+string(rune('a'+i)), []float32{0}, 1)})
	}
	b.Node("Identity", "out", []string{sum})
	b.Output("out", graph.Float, -1, 1)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	for i, entries := range constants {
		c := m.Graph.Initializer[i]
		c.FloatData, c.RawData = nil, nil
		c.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
		for k := 0; k < len(entries); k += 2 {
			c.ExternalData = append(c.ExternalData, &onnxpb.StringStringEntryProto{Key: proto.String(entries[k]), Value: proto.String(entries[k+1])})
		}
	}
	if data, err = proto.Marshal(&m); err != nil {
		t.Fatal(err)
	}
	return data
}

// readWeights has 1, 2 and 3 as floats.
func readWeights(name string) ([]byte, error) {
	switch name {
	case "w", "sub/w":
		return []byte{0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64}, nil
	case "one":
		return []byte{0, 0, 128, 63}, nil
	}
	return nil, fs.ErrNotExist
}

func TestConstantsInOtherFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		constants [][]string
		want      float32
	}{
		"a part":          {[][]string{{"location", "w", "offset", "4", "length", "4"}}, 2},
		"a whole file":    {[][]string{{"location", "./one"}}, 1},
		"to the end":      {[][]string{{"location", "sub/w", "offset", "8", "checksum", "x"}}, 3},
		"parts of a file": {[][]string{{"location", "w", "length", "4"}, {"location", "w", "offset", "8", "length", "4"}}, 4},
	} {
		s, err := runtime.OpenBytes(outside(t, c.constants...), runtime.Options{ReadFile: readWeights})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out, err := s.Run([]runtime.Tensor{{Floats: []float32{0}, Dims: []int64{1, 1}}})
		if err != nil || out[0].Floats[0] != c.want {
			t.Errorf("%s: %v, %v; want %v", name, out, err, c.want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRefusesConstantsOutsideOfTheFolder(t *testing.T) {
	t.Parallel()
	part := []string{"location", "w", "length", "12"}
	for want, constants := range map[string][][]string{
		`"/etc/passwd" is no file in the model's own folder`: {{"location", "/etc/passwd"}},
		`"../w" is no file in the model's own folder`:        {{"location", "../w"}},
		`"a/../../w" is no file`:                             {{"location", "a/../../w"}},
		`"" is no file`:                                      {{"offset", "0"}},
		`"." is no file`:                                     {{"location", "."}},
		"file does not exist":                                {{"location", "absent"}},
		"its offset is":                                      {{"location", "w", "offset", "-4"}},
		"its length is":                                      {{"location", "w", "length", "9223372036854775808"}},
		"it has 4 bytes from 9223372036854775807 on":         {{"location", "w", "offset", "9223372036854775807", "length", "4"}},
		"it has 13 bytes from 0 on":                          {{"location", "w", "length", "13"}},
		"no more than their files have":                      {part, part},
		"has 3 values, its dimensions require 1":             {{"location", "w"}},
	} {
		if err := runtime.Check(outside(t, constants...), readWeights); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := runtime.Check(outside(t, part), nil); err == nil || !strings.Contains(err.Error(), "export the model as one file") {
		t.Errorf("without other files: %v, want to be told to export one", err)
	}
}
