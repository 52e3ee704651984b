package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
)

// Limits of a model whose constants are kept in other files.
const (
	maxExternalFiles = 4096 // as exporters write that make a file of each constant
	// maxModelBytes limits the model with all its constants: the maximum of protocol buffers.
	maxModelBytes = math.MaxInt32
)

// external reads the constants that a model keeps in files beside its own.
type external struct {
	read  func(name string) ([]byte, error)
	files map[string][]byte
	had   int64 // bytes of the files
	taken int64 // bytes of the constants
}

// takeIn makes a model whole: each constant in another file gets its part of it. The library then reads no file, and sees the
// bytes that read returned. It reports whether there was any.
func (e *external) takeIn(g *onnxpb.GraphProto) (bool, error) {
	found := false
	err := eachConstant(g, 1, func(t *onnxpb.TensorProto) error {
		if t.GetDataLocation() != onnxpb.TensorProto_EXTERNAL && len(t.GetExternalData()) == 0 {
			return nil
		}
		found = true
		raw, err := e.part(t)
		if err != nil {
			return fmt.Errorf("constant %q is kept in another file: %w", shorten(t.GetName()), err)
		}
		t.RawData, t.ExternalData, t.DataLocation = raw, nil, nil
		return nil
	})
	return found, err
}

// part returns the bytes of a constant in the file.
func (e *external) part(t *onnxpb.TensorProto) ([]byte, error) {
	if e.read == nil {
		return nil, errors.New("there are no other files here; export the model as one file")
	}
	var location string
	offset, length := int64(0), int64(-1) // to the end
	for _, entry := range t.ExternalData {
		switch entry.GetKey() {
		case "location":
			location = entry.GetValue()
		case "offset", "length":
			n, err := strconv.ParseInt(entry.GetValue(), 10, 64)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("its %s is %q, no number of bytes", entry.GetKey(), shorten(entry.GetValue()))
			}
			if entry.GetKey() == "offset" {
				offset = n
			} else {
				length = n
			}
		}
	}
	data, err := e.file(location)
	if err != nil {
		return nil, err
	}
	size := int64(len(data))
	if length < 0 {
		length = max(size-offset, 0)
	}
	if offset > size || length > size-offset {
		return nil, fmt.Errorf("it has %d bytes from %d on, and the file %q has %d", length, offset, shorten(location), size)
	}
	// Parts that overlap would make a small file a large model.
	if e.taken += length; e.taken > e.had || e.taken > maxModelBytes {
		return nil, fmt.Errorf("with it, the constants have %d bytes; at most %d are served, and no more than their files have", e.taken, maxModelBytes)
	}
	return data[offset : offset+length : offset+length], nil
}

// file reads a file in the model file's own folder, or below it.
func (e *external) file(location string) ([]byte, error) {
	name := path.Clean(location)
	if location == "" || name == "." || !fs.ValidPath(name) {
		return nil, fmt.Errorf("%q is no file in the model's own folder", shorten(location))
	}
	if data, ok := e.files[name]; ok {
		return data, nil
	}
	if len(e.files) == maxExternalFiles {
		return nil, fmt.Errorf("the model has more than %d files", maxExternalFiles)
	}
	data, err := e.read(name)
	if err != nil {
		return nil, err
	}
	if e.files == nil {
		e.files = map[string][]byte{}
	}
	e.files[name] = data
	e.had += int64(len(data))
	return data, nil
}

// eachConstant calls f for the constants of a graph, of its nodes, and of the graphs within them.
func eachConstant(g *onnxpb.GraphProto, depth int, f func(*onnxpb.TensorProto) error) error {
	if depth > maxGraphDepth {
		return fmt.Errorf("graphs are nested more than %d deep", maxGraphDepth)
	}
	for _, t := range g.Initializer {
		if err := f(t); err != nil {
			return err
		}
	}
	for _, n := range g.Node {
		for _, a := range n.Attribute {
			for _, t := range slices.Concat(a.Tensors, []*onnxpb.TensorProto{a.T}) {
				if t == nil {
					continue
				}
				if err := f(t); err != nil {
					return err
				}
			}
		}
		for _, sub := range graphsOf(n) {
			if err := eachConstant(sub, depth+1, f); err != nil {
				return err
			}
		}
	}
	return nil
}
