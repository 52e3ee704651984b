package forgetest

import (
	"bytes"
	"compress/flate"
	"crypto/sha1" // #nosec G505 -- git's own
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Types of objects in a pack.
const (
	Commit   = 1
	Tree     = 2
	Blob     = 3
	RefDelta = 7
)

// Object is one of a pack, as an attacker would write it.
type Object struct {
	Type int
	// Size is the size in the header; 0: the size of Body.
	Size int64
	Base [20]byte // of a RefDelta
	Body []byte
	// Zeros is the number of zero bytes after Body, which are not held in memory.
	Zeros int64
}

// Pack encodes these objects in git's format. count is the count in its header; 0: the number of objects.
func Pack(count uint32, objects ...Object) []byte {
	var b bytes.Buffer
	if count == 0 {
		count = uint32(len(objects))
	}
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, []uint32{2, count})
	var last struct { // equal neighbours are deflated once
		object Object
		body   []byte
	}
	for _, o := range objects {
		size := o.Size
		if size == 0 {
			size = int64(len(o.Body)) + o.Zeros
		}
		head := byte(o.Type<<4) | byte(size&0xf)
		for size >>= 4; size > 0; size >>= 7 {
			b.WriteByte(head | 0x80)
			head = byte(size & 0x7f)
		}
		b.WriteByte(head)
		if o.Type == RefDelta {
			b.Write(o.Base[:])
		}
		if last.body == nil || string(last.object.Body) != string(o.Body) || last.object.Zeros != o.Zeros {
			last.object, last.body = o, deflate(o)
		}
		b.Write(last.body)
	}
	sum := sha1.Sum(b.Bytes()) // #nosec G401 -- git's own
	return append(b.Bytes(), sum[:]...)
}

// deflate returns o as a zlib stream (RFC 1950). A chunk of zeros is compressed once and repeated: a flushed block
// refers to nothing before it, and compressing half a gibibyte takes a minute under the race detector.
func deflate(o Object) []byte {
	const size = 1 << 20
	chunk := make([]byte, size)
	block := func(p []byte) []byte {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.DefaultCompression)
		if err != nil {
			panic(err) // the level is a constant
		}
		_, _ = w.Write(p)
		_ = w.Flush()
		return b.Bytes()
	}
	sum := adler32.New()
	out := append([]byte{0x78, 0x9c}, block(o.Body)...)
	_, _ = sum.Write(o.Body)
	full := block(chunk)
	for range o.Zeros / size {
		out = append(out, full...)
		_, _ = sum.Write(chunk)
	}
	rest := chunk[:o.Zeros%size]
	out = append(out, block(rest)...)
	_, _ = sum.Write(rest)
	return sum.Sum(append(out, 1, 0, 0, 0xff, 0xff)) // the last block is stored and empty
}

// HashOf returns git's name of an object.
func HashOf(kind string, body []byte, zeros int64) (out [20]byte) {
	h := sha1.New() // #nosec G401 -- git's own
	fmt.Fprintf(h, "%s %d\x00", kind, int64(len(body))+zeros)
	h.Write(body)
	chunk := make([]byte, 1<<20)
	for left := zeros; left > 0; left -= int64(len(chunk)) {
		h.Write(chunk[:min(left, int64(len(chunk)))])
	}
	copy(out[:], h.Sum(nil))
	return out
}

// CopyDelta returns a delta whose result is n times the base, size bytes each.
func CopyDelta(size int64, n int) []byte {
	varint := func(v int64) (out []byte) {
		for ; v >= 0x80; v >>= 7 {
			out = append(out, byte(v)|0x80)
		}
		return append(out, byte(v))
	}
	out := append(varint(size), varint(size*int64(n))...)
	for range n {
		for at := int64(0); at < size; at += 0xffffff {
			part := min(size-at, 0xffffff)
			out = append(out, 0xff, byte(at), byte(at>>8), byte(at>>16), byte(at>>24), byte(part), byte(part>>8), byte(part>>16))
		}
	}
	return out
}

// ServePack serves a repository whose branch main is at sha, and that answers every fetch with this pack.
func ServePack(t testing.TB, sha string, pack []byte) (url string) {
	t.Helper()
	line := func(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = fmt.Fprint(w, line("# service=git-upload-pack\n"), "0000", line(sha+" HEAD\x00agent=git/hostile\n"), line(sha+" refs/heads/main\n"), "0000")
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = fmt.Fprint(w, line("NAK\n"))
		_, _ = w.Write(pack)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/models.git"
}
