package runtime

import (
	"fmt"

	ort "github.com/yalue/onnxruntime_go"
)

// Element types as Info.Type names them.
const (
	Float  = "float"
	Double = "double"
	Int64  = "int64"
	Int32  = "int32"
	Bool   = "bool"
	String = "string"
)

// Info describes an input or output of a model.
type Info struct {
	Name string
	Type string  // one of the element types above
	Dims []int64 // −1 where the model leaves the size open, as the first (rows) usually is
	// Narrow is the type that the file declares, where Type is wider; else nil. Values have its range and digits.
	Narrow *Narrow
	// Missing is set for an input in which NaN is a missing value to the graph.
	Missing bool
	// Labels are the classes whose probabilities an output holds, if a ZipMap declared them; else nil.
	Labels []string
}

// Tensor is a dense value in row-major order: the data slice of the element type, and the size of each
// dimension.
type Tensor struct {
	// Name of the input or output. May be empty on an input, which then counts by its position.
	Name    string
	Floats  []float32
	Doubles []float64
	Int64s  []int64
	Int32s  []int32
	Bools   []bool
	Strings []string
	// Dims of a result may be shared between results; do not change them.
	Dims []int64
}

// countElements multiplies the dimensions; ok is false when one is negative or the product is beyond any memory.
func countElements(dims []int64) (n int, ok bool) {
	const limit = 1 << 40
	total := int64(1)
	for _, d := range dims {
		if d < 0 || d > limit {
			return 0, false
		}
		if total *= d; total > limit {
			return 0, false
		}
	}
	return int(total), true
}

// check returns an error unless t suits the input: rank, fixed dimensions, and as many values as the dimensions
// require.
func (in *Info) check(t *Tensor) error {
	if len(t.Dims) != len(in.Dims) && in.Dims != nil {
		return fmt.Errorf("input %q has %d dimensions %v, the model wants %v", in.Name, len(t.Dims), t.Dims, in.Dims)
	}
	for i, want := range in.Dims {
		if want >= 0 && t.Dims[i] != want {
			return fmt.Errorf("input %q has dimensions %v, the model wants %v (-1 is free)", in.Name, t.Dims, in.Dims)
		}
	}
	n, ok := countElements(t.Dims)
	if !ok || len(t.Dims) == 0 {
		return fmt.Errorf("input %q has impossible dimensions %v", in.Name, t.Dims)
	}
	have := 0
	switch in.Type {
	case Float:
		have = len(t.Floats)
	case Double:
		have = max(len(t.Doubles), len(t.Floats))
	case Int64:
		have = len(t.Int64s)
	case Int32:
		have = max(len(t.Int32s), len(t.Int64s))
	case Bool:
		have = len(t.Bools)
	case String:
		have = len(t.Strings)
	}
	if have != n {
		return fmt.Errorf("input %q (%s) has %d values of that type, its dimensions %v need %d", in.Name, in.Type, have, t.Dims, n)
	}
	return nil
}

// value is an ONNX Runtime tensor and, but for strings, the Go memory it lives in.
type value struct {
	ort     ort.Value
	floats  []float32
	doubles []float64
	int64s  []int64
	int32s  []int32
	bools   []bool
	strings *ort.StringTensor
}

func newValue(elem string, dims []int64, n int) (v value, err error) {
	shape := ort.Shape(dims)
	switch elem {
	case Float:
		v.floats = make([]float32, n)
		v.ort, err = ort.NewTensor(shape, v.floats)
	case Double:
		v.doubles = make([]float64, n)
		v.ort, err = ort.NewTensor(shape, v.doubles)
	case Int64:
		v.int64s = make([]int64, n)
		v.ort, err = ort.NewTensor(shape, v.int64s)
	case Int32:
		v.int32s = make([]int32, n)
		v.ort, err = ort.NewTensor(shape, v.int32s)
	case Bool:
		v.bools = make([]bool, n)
		v.ort, err = ort.NewTensor(shape, v.bools)
	case String:
		v.strings, err = ort.NewStringTensor(shape)
		v.ort = v.strings
	default:
		err = fmt.Errorf("element type %q is not supported", elem)
	}
	return v, err
}

// memory is the Go memory that the library reads or writes, to be pinned; nil when it has its own.
func (v *value) memory() any {
	switch {
	case len(v.floats) > 0:
		return &v.floats[0]
	case len(v.doubles) > 0:
		return &v.doubles[0]
	case len(v.int64s) > 0:
		return &v.int64s[0]
	case len(v.int32s) > 0:
		return &v.int32s[0]
	case len(v.bools) > 0:
		return &v.bools[0]
	}
	return nil
}

// fill copies t, which has passed Info.check, into the tensor.
func (v *value) fill(t *Tensor) error {
	switch {
	case v.strings != nil:
		return v.strings.SetContents(t.Strings)
	case v.floats != nil:
		copy(v.floats, t.Floats)
	case v.doubles != nil:
		if t.Doubles != nil {
			copy(v.doubles, t.Doubles)
			break
		}
		for i, x := range t.Floats {
			v.doubles[i] = float64(x)
		}
	case v.int64s != nil:
		copy(v.int64s, t.Int64s)
	case v.int32s != nil:
		if t.Int32s != nil {
			copy(v.int32s, t.Int32s)
			break
		}
		for i, x := range t.Int64s {
			if int64(int32(x)) != x {
				return fmt.Errorf("value %d does not fit an int32", x)
			}
			v.int32s[i] = int32(x)
		}
	case v.bools != nil:
		copy(v.bools, t.Bools)
	}
	return nil
}

// result copies the tensor out.
func (v *value) result(name string, dims []int64) (Tensor, error) {
	t := Tensor{Name: name, Dims: dims}
	switch {
	case v.strings != nil:
		s, err := v.strings.GetContents()
		if err != nil {
			return t, fmt.Errorf("reading output %q: %w", name, err)
		}
		t.Strings = s
	case v.floats != nil:
		t.Floats = append([]float32(nil), v.floats...)
	case v.doubles != nil:
		t.Doubles = append([]float64(nil), v.doubles...)
	case v.int64s != nil:
		t.Int64s = append([]int64(nil), v.int64s...)
	case v.int32s != nil:
		t.Int32s = append([]int32(nil), v.int32s...)
	case v.bools != nil:
		t.Bools = append([]bool(nil), v.bools...)
	}
	return t, nil
}

// adoptTensor wraps a tensor that the library allocated during a run; its data is in Go memory already.
func adoptTensor(name string, val ort.Value) (Tensor, error) {
	t := Tensor{Name: name, Dims: val.GetShape()}
	switch x := val.(type) {
	case *ort.Tensor[float32]:
		t.Floats = x.GetData()
	case *ort.Tensor[float64]:
		t.Doubles = x.GetData()
	case *ort.Tensor[int64]:
		t.Int64s = x.GetData()
	case *ort.Tensor[int32]:
		t.Int32s = x.GetData()
	case *ort.Tensor[bool]:
		t.Bools = x.GetData()
	case *ort.StringTensor:
		s, err := x.GetContents()
		if err != nil {
			return t, fmt.Errorf("reading output %q: %w", name, err)
		}
		t.Strings = s
	default:
		return t, fmt.Errorf("output %q is a %T, which is not supported", name, val)
	}
	return t, nil
}
