package openinference

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
)

// Messages that decode to many times their bytes are refused before they are decoded; the largest that is useful is not.
func TestMessagesAreBoundedBeforeDecoding(t *testing.T) {
	t.Parallel()
	field := func(n protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), content)
	}
	empty := func(n protowire.Number, count int) []byte { return bytes.Repeat(field(n, nil), count) }
	contents := func(b []byte) []byte { return field(5, field(5, b)) }
	for name, c := range map[string]struct {
		wire []byte
		want string
	}{
		"inputs":             {empty(5, 4<<20), "4096 inputs"},
		"outputs":            {empty(6, 4<<20), "4096 outputs"},
		"raw contents":       {empty(7, 4<<20), "4096 raw contents"},
		"parameters":         {empty(4, 4<<20), "4096 parameters"},
		"input parameters":   {field(5, empty(4, 4097)), "4096 parameters"},
		"output parameters":  {field(6, empty(2, 4097)), "4096 parameters"},
		"texts":              {contents(empty(8, 1<<20)), "262144 texts"},
		"texts of many":      {bytes.Repeat(contents(empty(8, 1000)), 300), "262144 texts"},
		"packed integers":    {contents(field(3, make([]byte, 8<<20))), "2097152 integers"},
		"single integers":    {contents(bytes.Repeat([]byte{3 << 3, 1}, 3<<20)), "2097152 integers"},
		"sizes":              {field(5, field(3, make([]byte, 8<<20))), "2097152 integers"},
		"floats":             {contents(field(6, make([]byte, 8<<20))), ""},
		"texts of a request": {contents(empty(8, 100_000)), ""},
		"not well formed":    {[]byte{0xff}, ""},
	} {
		err := CheckMessage(c.wire, &oippb.ModelInferRequest{})
		if got := problemText(err); (c.want == "") != (err == nil) || !strings.Contains(got, c.want) || err != nil && !fault.InvalidTensors.Has(err) {
			t.Errorf("%s: got %q, want invalid_tensors: %q", name, got, c.want)
		}
	}
	for _, m := range []proto.Message{&oippb.ServerLiveRequest{}, &oippb.ModelReadyRequest{}} {
		if err := CheckMessage(make([]byte, 100<<10), m); !problem.BodyTooLarge.Has(err) {
			t.Errorf("%T of 100 KiB: got %v, want body_too_large", m, err)
		}
		if err := CheckMessage(nil, m); err != nil {
			t.Errorf("empty %T: got %v, want no error", m, err)
		}
	}
}

func problemText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
