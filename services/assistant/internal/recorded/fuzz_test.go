package recorded

import (
	"bytes"
	"io"
	"testing"
)

// FuzzArchive checks that no archive makes the reader exceed its limits or visit a path outside.
func FuzzArchive(f *testing.F) {
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Add([]byte("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{}]}"))
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &budget{total: 1 << 20}
		_ = walkArchive(bytes.NewReader(data), int64(len(data)), b, func(name string, content io.Reader) error {
			if name == ".." || name[0] == '/' || bytes.Contains([]byte("/"+name+"/"), []byte("/../")) {
				t.Errorf("visited %q, want no path outside", name)
			}
			_, err := io.Copy(io.Discard, content)
			return err
		}) // a broken archive is an error
		if b.bytes > b.total+64<<10 {
			t.Errorf("read %d bytes, want at most %d", b.bytes, b.total)
		}
		l := newLoader()
		_ = l.add("shop/pods.json", bytes.NewReader(data))
		_ = l.add("shop/api/api.log", bytes.NewReader(data))
		_, _ = l.finish() // whatever it holds
	})
}
