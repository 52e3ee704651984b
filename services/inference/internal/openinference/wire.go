package openinference

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
	"github.com/mlp-platform/platform/services/inference/internal/request"
	"github.com/mlp-platform/platform/services/inference/internal/serving"
)

// Limits of decoded messages. An entry of two bytes may take a hundred times that in memory.
const (
	maxParameters = 4096    // of a message, its tensors' included
	maxTexts      = 1 << 18 // in bytes_contents of a message
	maxValues     = 2 << 20 // sizes and numbers of a message, as many as single floats fit
	// maxOther limits the bytes of a message that is no inference request, maxOpen those of one that needs no
	// credential.
	maxOther, maxOpen = 64 << 10, 1 << 10
)

// CheckMessage refuses a message whose decoded size far exceeds its bytes, before it is decoded. Malformed messages are
// left to the decoder.
func CheckMessage(wire []byte, m proto.Message) error {
	most := maxOther
	switch m.(type) {
	case *oippb.ModelInferRequest:
		w := &wireCount{}
		if w.request(wire); w.over != "" {
			return serving.Faulty(fault.InvalidTensors, []problem.Field{{Loc: []string{"body"}, Msg: w.over}})
		}
		return nil
	case *oippb.ServerLiveRequest, *oippb.ServerReadyRequest:
		most = maxOpen
	}
	if len(wire) > most {
		return problem.BodyTooLarge.Errorf("The message is larger than %d bytes.", most)
	}
	return nil
}

// wireCount counts the elements of an inference request's repeated fields.
type wireCount struct {
	inputs, outputs, raws, parameters, texts, values int
	over                                             string // the field over its limit
}

func (w *wireCount) add(n *int, more, most int, what string) bool {
	if *n += more; *n > most {
		w.over = fmt.Sprintf("there are more than %d %s", most, what)
	}
	return w.over == ""
}

// each calls field for every field of a message, with its content if that has a length, until one is too much.
func (w *wireCount) each(b []byte, field func(n protowire.Number, t protowire.Type, content []byte) bool) {
	for len(b) > 0 {
		n, t, size := protowire.ConsumeTag(b)
		if size < 0 {
			return
		}
		b = b[size:]
		var content []byte
		if t == protowire.BytesType {
			content, size = protowire.ConsumeBytes(b)
		} else {
			size = protowire.ConsumeFieldValue(n, t, b)
		}
		if size < 0 || !field(n, t, content) {
			return
		}
		b = b[size:]
	}
}

func (w *wireCount) request(b []byte) {
	w.each(b, func(n protowire.Number, _ protowire.Type, content []byte) bool {
		switch n {
		case 4:
			return w.parameter()
		case 5:
			return w.add(&w.inputs, 1, request.MaxTensors, "inputs") && w.input(content)
		case 6:
			return w.add(&w.outputs, 1, request.MaxTensors, "outputs") && w.output(content)
		case 7:
			return w.add(&w.raws, 1, request.MaxTensors, "raw contents")
		}
		return true
	})
}

func (w *wireCount) parameter() bool {
	return w.add(&w.parameters, 1, maxParameters, "parameters")
}

func (w *wireCount) input(b []byte) bool {
	w.each(b, func(n protowire.Number, t protowire.Type, content []byte) bool {
		switch n {
		case 3:
			return w.numbers(t, content)
		case 4:
			return w.parameter()
		case 5:
			return w.contents(content)
		}
		return true
	})
	return w.over == ""
}

func (w *wireCount) output(b []byte) bool {
	w.each(b, func(n protowire.Number, _ protowire.Type, _ []byte) bool { return n != 2 || w.parameter() })
	return w.over == ""
}

func (w *wireCount) contents(b []byte) bool {
	w.each(b, func(n protowire.Number, t protowire.Type, content []byte) bool {
		switch n {
		case 1, 2, 3, 4, 5:
			return w.numbers(t, content)
		case 8:
			return w.add(&w.texts, 1, maxTexts, "texts")
		}
		return true // floats take as much as their encoding
	})
	return w.over == ""
}

// numbers counts integers: one, or as many as are packed.
func (w *wireCount) numbers(t protowire.Type, packed []byte) bool {
	n := 1
	if t == protowire.BytesType {
		n = 0
		for _, b := range packed {
			if b < 0x80 { // the last byte of a number
				n++
			}
		}
	}
	return w.add(&w.values, n, maxValues, "integers and sizes")
}
