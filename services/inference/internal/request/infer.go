package request

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Infer is the body of POST /v2/models/{model}/infer, or its JSON part where binary tensors follow.
// https://github.com/kserve/open-inference-protocol
type Infer struct {
	ID      string
	Alias   string // parameter alias: which of the model's versions
	Timeout int64  // parameter timeout in microseconds; 0: none
	// BinaryOutput is the default for outputs that do not set it.
	BinaryOutput bool
	Inputs       []InferInput
	Outputs      []InferOutput // those that are wanted; none: all
}

// InferInput is one tensor as it was sent: Data is its JSON, or nil if its
// BinarySize bytes follow the JSON part (else −1).
type InferInput struct {
	Name, Datatype string
	Shape          []int64
	Data           []byte
	BinarySize     int
}

// InferOutput is an output that the request wants.
type InferOutput struct {
	Name   string
	Binary bool
}

// MaxTensors limits the tensors of one inference request, maxDims the dimensions of one.
const (
	MaxTensors = 4096
	maxDims    = 8
)

// inferReader collects faults.
type inferReader struct{ faults []problem.Field }

func (r *inferReader) fault(msg string, loc ...string) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, problem.Field{Loc: append([]string{"body"}, loc...), Msg: msg})
	}
}

// ParseInfer reads the JSON of an inference request. Data are slices of body.
func ParseInfer(body []byte) (p Infer, faults []problem.Field) {
	var top Object
	if faults := Parse(body, &top); faults != nil {
		return p, faults
	}
	r := &inferReader{}
	var params, inputs, outputs []byte
	for _, m := range top.members {
		switch string(m.Name) {
		case "id":
			p.ID = r.text(m)
			if msg := CheckJobID(p.ID); msg != "" {
				r.fault(msg, "id")
			}
		case "parameters":
			params = m.Value
		case "inputs":
			inputs = m.Value
		case "outputs":
			outputs = m.Value
		default:
			r.fault("this member is unknown", problem.Shorten(string(m.Name)))
		}
	}
	if params != nil {
		r.parameters(&p, params)
	}
	switch {
	case inputs == nil:
		r.fault("this member is missing", "inputs")
	case r.list(inputs, "inputs", func(i int, raw []byte) { p.Inputs = append(p.Inputs, r.input(i, raw)) }) == 0 && len(r.faults) == 0:
		r.fault("there must be at least one tensor", "inputs")
	}
	if outputs != nil {
		r.list(outputs, "outputs", func(i int, raw []byte) { p.Outputs = append(p.Outputs, r.output(i, raw, p.BinaryOutput)) })
	}
	return p, r.faults
}

func (r *inferReader) text(m Member, loc ...string) string {
	s, fault := parseText(m)
	if fault != nil {
		r.fault(fault.Msg, append(loc, string(m.Name))...)
	}
	return s
}

// list calls each for every element of a JSON array of objects, and returns how many there are.
func (r *inferReader) list(raw []byte, name string, each func(i int, raw []byte)) int {
	if raw[0] != '[' {
		r.fault("expected a list, got "+kindName(raw[0]), name)
		return 0
	}
	s, n := scanner{b: raw, i: 1}, 0
	for ; s.next() != ']'; n++ {
		if n == MaxTensors {
			r.fault("there are more than "+strconv.Itoa(MaxTensors), name)
			return n
		}
		each(n, s.value())
	}
	return n
}

// members of a JSON object that Parse has checked as part of the body.
func members(raw []byte) (out []Member) {
	for s := (scanner{b: raw, i: 1}); s.next() != '}'; {
		name := s.value()
		key := name[1 : len(name)-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key, _ = jsontext.AppendUnquote(nil, name)
		}
		s.next() // the colon
		s.i++
		s.next()
		out = append(out, Member{key, s.value()})
	}
	return out
}

func (r *inferReader) parameters(p *Infer, raw []byte) {
	if raw[0] != '{' {
		r.fault("expected an object, got "+kindName(raw[0]), "parameters")
		return
	}
	for _, m := range members(raw) {
		switch string(m.Name) {
		case "alias":
			p.Alias = r.text(m, "parameters")
		case "binary_data_output":
			p.BinaryOutput = r.boolean(m.Value, "parameters", "binary_data_output")
		case "timeout":
			n, msg := parseInteger(m.Value, schema.Range{})
			if msg == "" && n < 0 {
				msg = "expected a number of microseconds, at least 0"
			}
			if msg != "" {
				r.fault(msg, "parameters", "timeout")
			}
			p.Timeout = n
		}
		// Other parameters select features that this service does not have, such as priorities and sequences of
		// requests.
	}
}

func (r *inferReader) boolean(raw []byte, loc ...string) bool {
	if raw[0] != 't' && raw[0] != 'f' {
		r.fault("expected true or false, got "+kindName(raw[0]), loc...)
	}
	return raw[0] == 't'
}

// SharedMemory names the parameter of Triton's shared memory, which no client here can have.
const SharedMemory = "shared_memory_region"

// Features of Triton that this service does not have, as named in its refusals.
const (
	NoSharedInput    = "shared memory is not served; send the data"
	NoSharedOutput   = "shared memory is not served; the response holds the data"
	NoClassification = "classifications are not served; the outputs hold the model's own labels and probabilities"
)

func (r *inferReader) input(i int, raw []byte) (in InferInput) {
	at := strconv.Itoa(i)
	in.BinarySize = -1
	if raw[0] != '{' {
		r.fault("expected an object, got "+kindName(raw[0]), "inputs", at)
		return in
	}
	seen := map[string]bool{}
	for _, m := range members(raw) {
		name := string(m.Name)
		seen[name] = true
		switch name {
		case "name":
			in.Name = r.text(m, "inputs", at)
		case "datatype":
			in.Datatype = r.text(m, "inputs", at)
		case "shape":
			in.Shape = r.shape(m.Value, at)
		case "data":
			if in.Data = m.Value; m.Value[0] != '[' {
				r.fault("expected a list, got "+kindName(m.Value[0]), "inputs", at, "data")
			}
		case "parameters":
			r.inputParameters(&in, m.Value, at)
		default:
			r.fault("this member is unknown", "inputs", at, problem.Shorten(name))
		}
	}
	for _, name := range []string{"name", "datatype", "shape"} {
		if !seen[name] {
			r.fault("this member is missing", "inputs", at, name)
		}
	}
	switch {
	case in.Data == nil && in.BinarySize < 0:
		r.fault("this member is missing", "inputs", at, "data")
	case in.Data != nil && in.BinarySize >= 0:
		r.fault("a tensor has either data or binary_data_size", "inputs", at, "data")
	}
	return in
}

func (r *inferReader) inputParameters(in *InferInput, raw []byte, at string) {
	if raw[0] != '{' {
		r.fault("expected an object, got "+kindName(raw[0]), "inputs", at, "parameters")
		return
	}
	for _, m := range members(raw) {
		switch string(m.Name) {
		case "binary_data_size":
			n, msg := parseInteger(m.Value, schema.Magnitude(maxExact))
			if msg != "" || n < 0 {
				r.fault("expected a number of bytes", "inputs", at, "parameters", "binary_data_size")
				n = 0
			}
			in.BinarySize = int(n)
		case SharedMemory:
			r.fault("shared memory is not served; send the data", "inputs", at, "parameters", SharedMemory)
		}
	}
}

func (r *inferReader) shape(raw []byte, at string) (out []int64) {
	if raw[0] != '[' {
		r.fault("expected a list of sizes, got "+kindName(raw[0]), "inputs", at, "shape")
		return nil
	}
	for s := (scanner{b: raw, i: 1}); s.next() != ']'; {
		n, msg := parseInteger(s.value(), schema.Magnitude(maxExact))
		if out = append(out, n); msg == "" {
			msg = CheckShape(out)
		}
		if msg != "" {
			r.fault(msg, "inputs", at, "shape")
			return nil
		}
	}
	return out
}

// CheckShape returns the fault of a shape that no model accepts, or "".
func CheckShape(shape []int64) string {
	for _, n := range shape {
		if n < 0 {
			return "a size must be at least 0"
		}
	}
	if len(shape) > maxDims {
		return "there are more than " + strconv.Itoa(maxDims) + " dimensions"
	}
	return ""
}

func (r *inferReader) output(i int, raw []byte, binary bool) (out InferOutput) {
	at := strconv.Itoa(i)
	out.Binary = binary
	if raw[0] != '{' {
		r.fault("expected an object, got "+kindName(raw[0]), "outputs", at)
		return out
	}
	for _, m := range members(raw) {
		switch string(m.Name) {
		case "name":
			out.Name = r.text(m, "outputs", at)
		case "parameters":
			if m.Value[0] != '{' {
				r.fault("expected an object, got "+kindName(m.Value[0]), "outputs", at, "parameters")
				continue
			}
			for _, q := range members(m.Value) {
				switch name := string(q.Name); name {
				case "binary_data":
					out.Binary = r.boolean(q.Value, "outputs", at, "parameters", name)
				case "classification":
					if !bytes.Equal(q.Value, []byte("0")) {
						r.fault(NoClassification, "outputs", at, "parameters", name)
					}
				case SharedMemory:
					r.fault(NoSharedOutput, "outputs", at, "parameters", name)
				}
			}
		default:
			r.fault("this member is unknown", "outputs", at, problem.Shorten(string(m.Name)))
		}
	}
	if out.Name == "" {
		r.fault("this member is missing", "outputs", at, "name")
	}
	return out
}
