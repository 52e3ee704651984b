package grpcserver

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// codec decodes no message before it was checked: decoding may take many times the memory of the message.
type codec struct {
	encoding.CodecV2
	check func(wire []byte, message proto.Message) error
	// refused maps a refused message, left empty, to the reason. gRPC would turn an error of Unmarshal into an internal
	// error; handle, which is called next, takes the reason from here.
	refused sync.Map
	// reserved maps an answer to the room made for it; Marshal, which is called next, takes it from here.
	reserved sync.Map
}

func newCodec(check func([]byte, proto.Message) error) *codec {
	return &codec{CodecV2: encoding.GetCodecV2(encodingproto.Name), check: check}
}

// Unmarshal implements encoding.CodecV2.
func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	if err := c.check(buf.ReadOnlyData(), m); err != nil {
		c.refused.Store(v, err)
		return nil
	}
	return proto.Unmarshal(buf.ReadOnlyData(), m)
}

// refusal is why the message was refused, or nil.
func (c *codec) refusal(message any) error {
	if err, ok := c.refused.LoadAndDelete(message); ok {
		return err.(error)
	}
	return nil
}
