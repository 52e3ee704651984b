package unpack_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
	"github.com/mlp-platform/platform/services/trainer/internal/unpack"
)

func TestReader(t *testing.T) {
	t.Parallel()
	const text = "start,run\n1,2\n"
	bomb := hostiletest.Gzip(t, hostiletest.File{Body: "0\n", Times: 20 << 20})
	for name, c := range map[string]struct {
		in   []byte
		most int64
		want string // of the error
	}{
		"plain":          {[]byte(text), 1 << 20, ""},
		"packed":         {hostiletest.Gzip(t, hostiletest.File{Data: []byte(text)}), 1 << 20, ""},
		"empty":          {nil, 1 << 20, ""},
		"too large":      {[]byte(strings.Repeat(text, 1<<18)), 1 << 20, "larger than 1 MiB unpacked"},
		"packed, large":  {bomb, 1 << 20, "larger than 1 MiB unpacked"},
		"packed too far": {bomb, 1 << 30, "more than 100 times the bytes read"},
		"broken":         {[]byte("\x1f\x8bxx"), 1 << 20, "unpack"},
	} {
		r, err := unpack.Reader(bytes.NewReader(c.in), c.most)
		var n int64
		if err == nil {
			n, err = io.Copy(io.Discard, r)
		}
		if c.want == "" {
			if err != nil || n != int64(len(text)) && len(c.in) > 0 {
				t.Errorf("%s: %d bytes, %v; want %d and no error", name, n, err, len(text))
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
	}
}

// For any bytes, the reader ends; packed content is returned, and no more than the limit.
func FuzzReader(f *testing.F) {
	f.Add([]byte("start,run\n1,2\n"))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"))
	f.Add(hostiletest.Gzip(f, hostiletest.File{Body: "0\n", Times: 1 << 16}))
	f.Fuzz(func(t *testing.T, in []byte) {
		const most = 1 << 20
		read := func(in []byte) (out []byte, err error) {
			hostiletest.CheckAllocation(t, 16<<20, func() {
				var r io.Reader
				if r, err = unpack.Reader(bytes.NewReader(in), most); err == nil {
					out, err = io.ReadAll(r)
				}
			})
			return out, err
		}
		if out, err := read(in); len(out) > most || err == nil && !bytes.HasPrefix(in, []byte("\x1f\x8b")) && !bytes.Equal(out, in) {
			t.Fatalf("%q became %d bytes, %v; want itself, or at most %d", in, len(out), err, most)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(in)
		_ = z.Close()
		if out, err := read(packed.Bytes()); err != nil || !bytes.Equal(out, in) {
			t.Fatalf("packed and read %d bytes of %d, %v; want all", len(out), len(in), err)
		}
	})
}
