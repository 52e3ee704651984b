package runtime

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
)

// Limits of a file's encoding. Two bytes of it can become a message of some hundred bytes in memory, so that decoding
// first and counting afterwards is too late.
const (
	// maxNesting limits messages within messages; a graph within a graph is three of them.
	maxNesting = 64
	// A decoded file may take decodedBase, and decodedTimes its own size: a list of trees takes about eight times.
	decodedBase, decodedTimes = 32 << 20, 16
)

// What decoding allocates, in bytes, estimated from the structs that protoc-gen-go makes.
const (
	costMessage = 256
	costBytes   = 48
	costNumber  = 8
)

// CheckEncoding limits the depth and the decoded size of a model file without decoding it.
func CheckEncoding(data []byte) error {
	s := encodingScan{limit: decodedBase + decodedTimes*len(data)}
	return s.message(data, fieldsOf((*onnxpb.ModelProto)(nil).ProtoReflect().Descriptor()), 1)
}

// field is the scan's description of one field.
type field struct {
	known    bool
	numbers  bool           // packed or single numbers
	width    int            // bytes of one packed number; 0 for varints
	children *messageFields // of a message
}

// messageFields are the fields of one message type by number. ONNX numbers its fields below 64.
type messageFields struct{ fields [64]field }

var fieldTables struct {
	sync.Mutex // guards byName
	byName     map[protoreflect.FullName]*messageFields
}

func fieldsOf(d protoreflect.MessageDescriptor) *messageFields {
	fieldTables.Lock()
	defer fieldTables.Unlock()
	if fieldTables.byName == nil {
		fieldTables.byName = map[protoreflect.FullName]*messageFields{}
	}
	return tableOf(d)
}

// tableOf runs under fieldTables' lock.
func tableOf(d protoreflect.MessageDescriptor) *messageFields {
	if m := fieldTables.byName[d.FullName()]; m != nil {
		return m
	}
	m := &messageFields{}
	fieldTables.byName[d.FullName()] = m
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		if int(fd.Number()) >= len(m.fields) {
			continue
		}
		f := field{known: true}
		switch fd.Kind() {
		case protoreflect.MessageKind, protoreflect.GroupKind:
			f.children = tableOf(fd.Message())
		case protoreflect.StringKind, protoreflect.BytesKind:
		case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
			f.numbers, f.width = true, 4
		case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
			f.numbers, f.width = true, 8
		default:
			f.numbers = true
		}
		m.fields[fd.Number()] = f
	}
	return m
}

type encodingScan struct{ cost, limit int }

var errEncoding = errors.New("not an ONNX file: the encoding is damaged")

func (s *encodingScan) message(data []byte, table *messageFields, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("the file nests messages more than %d deep", maxNesting)
	}
	s.cost += costMessage
	for len(data) > 0 {
		if s.cost > s.limit {
			return fmt.Errorf("the file would take more than %d bytes once decoded, far more than its own size", s.limit)
		}
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errEncoding
		}
		data = data[n:]
		var f field
		if int(num) < len(table.fields) {
			f = table.fields[num]
		}
		switch typ {
		case protowire.VarintType:
			_, n = protowire.ConsumeVarint(data)
			s.cost += costNumber
		case protowire.Fixed32Type:
			_, n = protowire.ConsumeFixed32(data)
			s.cost += costNumber
		case protowire.Fixed64Type:
			_, n = protowire.ConsumeFixed64(data)
			s.cost += costNumber
		case protowire.BytesType:
			var v []byte
			if v, n = protowire.ConsumeBytes(data); n < 0 {
				return errEncoding
			}
			if err := s.value(v, f, depth); err != nil {
				return err
			}
		default: // groups, which ONNX has none of
			return errEncoding
		}
		if n < 0 {
			return errEncoding
		}
		data = data[n:]
	}
	return nil
}

// value counts one length-prefixed value.
func (s *encodingScan) value(v []byte, f field, depth int) error {
	switch {
	case f.children != nil:
		return s.message(v, f.children, depth+1)
	case f.numbers && f.width > 0:
		s.cost += costNumber * (len(v) / f.width)
	case f.numbers:
		for _, b := range v {
			if b < 0x80 { // the last byte of a number
				s.cost += costNumber
			}
		}
	default: // text, bytes, or a field that decoding keeps unchanged
		s.cost += costBytes + len(v)
	}
	return nil
}
