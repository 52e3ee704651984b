// Package openinference serves models by the Open Inference Protocol V2, whose requests are tensors: by the names of
// the graph's inputs, by the names of the model's columns, or as one matrix of all columns.
// https://github.com/kserve/open-inference-protocol
package openinference

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/request"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// MaxRows limits the rows of one request.
const MaxRows = 1024

// datatypes are the protocol's names of element types.
var datatypes = map[string]string{
	runtime.Float: "FP32", runtime.Double: "FP64", runtime.Int64: "INT64", runtime.Int32: "INT32", runtime.Bool: "BOOL", runtime.String: "BYTES",
}

// narrowTypes are the protocol's names of element types that are wider ones everywhere else.
var narrowTypes = map[string]string{
	"float16": "FP16", "bfloat16": "BF16", "int8": "INT8", "uint8": "UINT8", "int16": "INT16", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
}

// datatypeOf is the protocol's name of a tensor's element type.
func datatypeOf(info runtime.Info) string {
	if info.Narrow != nil {
		return narrowTypes[info.Narrow.Name]
	}
	return datatypes[info.Type]
}

// matrixName is the input that holds all columns side by side, whatever the names of the graph's inputs.
const matrixName = "input"

// sent is a tensor of the request before its values are read.
type sent struct {
	request.InferInput
	at     int    // its place in the request
	binary []byte // its data, if it was sent so
}

// assembler makes the graph's inputs of the tensors that were sent.
type assembler struct {
	m      *model.Model
	rows   int64 // of all tensors; −1 until the first
	matrix bool  // the only tensor is `input`, whose numbers are converted to the graph's type
	faults []problem.Field
}

func (a *assembler) fault(msg string, loc ...string) {
	const most = 50
	if len(a.faults) < most {
		a.faults = append(a.faults, problem.Field{Loc: append([]string{"body", "inputs"}, loc...), Msg: msg})
	}
}

// assemble returns the inputs of the model's graph, in its order, and the number of rows; or the faults.
func assemble(m *model.Model, tensors []sent) (in []runtime.Tensor, rows int, faults []problem.Field) {
	a := &assembler{m: m, rows: -1, matrix: len(tensors) == 1 && tensors[0].Name == matrixName}
	byName := map[string]*sent{}
	for i := range tensors {
		t := &tensors[i]
		if byName[t.Name] != nil {
			a.fault("the tensor "+strconv.Quote(problem.Shorten(t.Name))+" is there twice", strconv.Itoa(i), "name")
		}
		byName[t.Name] = t
	}
	if a.faults != nil {
		return nil, 0, a.faults
	}
	graph, columns := m.Inputs(), m.Schema().Columns
	switch {
	case hasNames(byName, len(graph), func(i int) string { return graph[i].Name }):
		in = a.byGraph(byName)
	case len(columns) > 0 && hasNames(byName, len(columns), func(i int) string { return columns[i].Name }):
		in = a.byColumn(byName)
	case len(columns) > 0 && a.matrix:
		in = a.byMatrix(&tensors[0])
	default:
		a.nameFaults(tensors, byName)
	}
	if a.faults != nil {
		return nil, 0, a.faults
	}
	return in, int(a.rows), nil
}

func hasNames(byName map[string]*sent, n int, name func(i int) string) bool {
	if len(byName) != n {
		return false
	}
	for i := range n {
		if byName[name(i)] == nil {
			return false
		}
	}
	return true
}

// nameFaults reports wrong names, compared with the columns if one of them was sent, else with the graph's inputs.
func (a *assembler) nameFaults(tensors []sent, byName map[string]*sent) {
	var names []string
	for _, in := range a.m.Inputs() {
		names = append(names, in.Name)
	}
	columns := a.m.Schema().Names()
	if slices.ContainsFunc(columns, func(c string) bool { return byName[c] != nil }) {
		names = columns
	}
	for _, name := range names {
		if byName[name] == nil {
			a.fault("the tensor "+strconv.Quote(name)+" is missing", name)
		}
	}
	for i, t := range tensors {
		if !slices.Contains(names, t.Name) {
			a.fault("unexpected; the inputs are "+listNames(names), strconv.Itoa(i), "name", problem.Shorten(t.Name))
		}
	}
}

// listNames shortens long lists.
func listNames(names []string) string {
	const shown = 20
	text := strings.Join(names[:min(len(names), shown)], ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// byGraph takes each tensor as the graph's input of its name.
func (a *assembler) byGraph(byName map[string]*sent) []runtime.Tensor {
	out := make([]runtime.Tensor, len(a.m.Inputs()))
	for i, info := range a.m.Inputs() {
		out[i] = a.decode(byName[info.Name], info, a.m.InputDims(i), a.optional(i))
		a.refuseMissing(byName[info.Name], &out[i], i)
	}
	if a.faults != nil {
		return nil
	}
	shapes := make([][]int64, len(out))
	for i := range out {
		shapes[i] = out[i].Dims
	}
	if msg := a.m.CheckLengths(shapes); msg != "" {
		a.fault(msg, "shape")
	}
	return out
}

// byColumn concatenates the tensors of the columns into the inputs that they feed.
func (a *assembler) byColumn(byName map[string]*sent) []runtime.Tensor {
	columns := a.m.Schema().Columns
	out := make([]runtime.Tensor, len(a.m.Inputs()))
	for i, info := range a.m.Inputs() {
		var parts []runtime.Tensor
		total := 0
		for _, c := range a.m.Feeds(i) {
			dims := []int64{-1, 1}
			if columns[c].Kind == schema.Vector {
				dims[1] = int64(columns[c].Length)
			}
			part := a.decode(byName[columns[c].Name], info, dims, columns[c].Optional)
			parts = append(parts, part)
			total += int(dims[1])
		}
		if a.faults == nil {
			out[i] = concatColumns(info, parts, int(a.rows), total)
		}
	}
	return out
}

// byMatrix splits one matrix into the inputs that its columns feed.
func (a *assembler) byMatrix(t *sent) []runtime.Tensor {
	graph, columns := a.m.Inputs(), a.m.Schema().Columns
	total := 0
	for i, info := range graph {
		if datatypeOf(info) != datatypeOf(graph[0]) {
			a.fault(fmt.Sprintf("the model's inputs have different datatypes, so that one matrix cannot hold them; send %s", listNames(a.m.Schema().Names())), "0", "name")
			return nil
		}
		for _, c := range a.m.Feeds(i) {
			total += columnWidth(&columns[c])
		}
	}
	all := a.decode(t, graph[0], []int64{-1, int64(total)}, slices.ContainsFunc(columns, func(c schema.Column) bool { return c.Optional }))
	if a.faults != nil {
		return nil
	}
	// Where each column begins in a row of the matrix, which has them in the order of the schema.
	begins := make([]int, len(columns))
	for c, at := 0, 0; c < len(columns); c++ {
		begins[c] = at
		at += columnWidth(&columns[c])
	}
	out := make([]runtime.Tensor, len(graph))
	for i, info := range graph {
		var parts []runtime.Tensor
		width := 0
		for _, c := range a.m.Feeds(i) {
			w := columnWidth(&columns[c])
			part := model.NewTensor(info.Type, []int64{a.rows, int64(w)})
			copyColumns(&part, &all, int(a.rows), begins[c], total, w, 0, w)
			parts = append(parts, part)
			width += w
		}
		out[i] = concatColumns(info, parts, int(a.rows), width)
		a.refuseMissing(t, &out[i], i)
	}
	return out
}

// optional reports whether values may be missing in a column of the graph's input.
func (a *assembler) optional(input int) bool {
	columns := a.m.Schema().Columns
	if len(columns) == 0 {
		return a.m.Inputs()[input].Missing
	}
	return slices.ContainsFunc(a.m.Feeds(input), func(c int) bool { return columns[c].Optional })
}

// refuseMissing refuses missing values in columns that require them.
func (a *assembler) refuseMissing(t *sent, values *runtime.Tensor, input int) {
	columns, at := a.m.Schema().Columns, 0
	if a.faults != nil || len(columns) == 0 || !a.optional(input) {
		return
	}
	for row := range a.rows {
		for _, c := range a.m.Feeds(input) {
			for range columnWidth(&columns[c]) {
				if !columns[c].Optional && math.IsNaN(floatAt(values, at)) {
					a.fault(fmt.Sprintf("row %d: the column %q is missing, and the signature requires it", row, problem.Shorten(columns[c].Name)), strconv.Itoa(t.at), "data")
					return
				}
				at++
			}
		}
	}
}

func columnWidth(c *schema.Column) int {
	if c.Kind == schema.Vector {
		return c.Length
	}
	return 1
}

// decode reads a tensor, which must have the element type and the size of a row; the first of dims is the rows. missing
// permits missing values.
func (a *assembler) decode(t *sent, info runtime.Info, dims []int64, missing bool) (out runtime.Tensor) {
	at, elem := strconv.Itoa(t.at), info.Type
	read, want := elem, datatypeOf(info)
	if a.matrix {
		read = matrixElem(t.Datatype, elem)
	}
	if t.Datatype != want && (!a.matrix || t.Datatype != datatypes[read]) {
		a.fault(fmt.Sprintf("the tensor %q has the datatype %q, the model takes %s", problem.Shorten(t.Name), problem.Shorten(t.Datatype), want), at, "datatype")
		return out
	}
	shape, ok := matchShape(t.Shape, dims)
	if !ok {
		a.fault(fmt.Sprintf("the tensor %q has the shape %v, the model takes %v (-1 is open: the number of rows first)", problem.Shorten(t.Name), t.Shape, dims), at, "shape")
		return out
	}
	rows := shape[0]
	switch {
	case rows == 0:
		a.fault("the tensor has no rows", at, "shape")
		return out
	case rows > MaxRows:
		a.fault(fmt.Sprintf("the tensor has %d rows; a request has at most %d", rows, MaxRows), at, "shape")
		return out
	case a.rows >= 0 && rows != a.rows:
		a.fault(fmt.Sprintf("the tensor has %d rows, the ones before it have %d", rows, a.rows), at, "shape")
		return out
	}
	a.rows = rows
	n, size := int64(1), int64(max(len(t.Data), len(t.binary)))
	for _, d := range shape {
		if d > 0 && n > size/d { // each value has at least one byte; allocate no more than was sent
			a.fault(fmt.Sprintf("the shape %v has more values than the data's %d bytes", t.Shape, size), at, "data")
			return out
		}
		n *= d
	}
	out = model.NewTensor(read, shape)
	var msg string
	switch {
	case t.Data != nil:
		msg = request.FillJSON(t.Data, t.Shape, &out, missing)
	case info.Narrow != nil && t.Datatype == want:
		msg = request.FillNarrow(t.binary, info.Narrow, &out, missing)
	default:
		msg = request.FillBinary(t.binary, &out, missing)
	}
	if msg == "" && read != elem {
		out, msg = convertFloats(&out, elem)
	}
	if msg == "" && info.Narrow != nil {
		msg = request.CheckNarrow(info.Narrow, want, &out)
	}
	if msg != "" {
		a.fault(msg, at, "data")
	}
	return out
}

// matchShape is the shape in the graph's own rank. A row of one value may have a dimension for it or not.
func matchShape(shape, dims []int64) ([]int64, bool) {
	switch {
	case len(shape) == 1 && len(dims) == 2 && dims[1] == 1:
		shape = []int64{shape[0], 1}
	case len(shape) == 2 && len(dims) == 1 && shape[1] == 1:
		shape = shape[:1]
	case len(shape) != len(dims):
		return nil, false
	}
	for i := 1; i < len(dims); i++ {
		if shape[i] != dims[i] && (dims[i] >= 0 || shape[i] < 1) {
			return nil, false
		}
	}
	return slices.Clone(shape), true
}

// concatColumns lays parts of the same rows side by side.
func concatColumns(info runtime.Info, parts []runtime.Tensor, rows, width int) runtime.Tensor {
	dims := []int64{int64(rows), int64(width)}
	if len(info.Dims) == 1 {
		dims = dims[:1]
	}
	if len(parts) == 1 {
		parts[0].Dims = dims
		return parts[0]
	}
	out := model.NewTensor(info.Type, dims)
	at := 0
	for i := range parts {
		w := int(parts[i].Dims[1])
		copyColumns(&out, &parts[i], rows, 0, w, w, at, width)
		at += w
	}
	return out
}

// copyColumns copies n values of each row: from place src of rows that are srcWidth wide, to place dst of rows that are
// dstWidth wide.
func copyColumns(to, from *runtime.Tensor, rows, src, srcWidth, n, dst, dstWidth int) {
	for r := range rows {
		a, b := dst+r*dstWidth, src+r*srcWidth
		switch {
		case from.Floats != nil:
			copy(to.Floats[a:a+n], from.Floats[b:b+n])
		case from.Doubles != nil:
			copy(to.Doubles[a:a+n], from.Doubles[b:b+n])
		case from.Int64s != nil:
			copy(to.Int64s[a:a+n], from.Int64s[b:b+n])
		case from.Int32s != nil:
			copy(to.Int32s[a:a+n], from.Int32s[b:b+n])
		case from.Bools != nil:
			copy(to.Bools[a:a+n], from.Bools[b:b+n])
		default:
			copy(to.Strings[a:a+n], from.Strings[b:b+n])
		}
	}
}
