// Package unpack reads data files that are compressed by gzip or not, and refuses those that unpack to more than such
// files do.
package unpack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// A packed table or log has a fifth to a thirtieth of its size. The format allows for a thousandth, by which a file
// that fits into any repository fills any memory.
const (
	maxRatio  = 100
	freeBytes = 16 << 20 // unpacked, before the ratio counts
)

// Reader is the text of a file. It answers an error rather than a silent end once more than most bytes were read.
func Reader(src io.Reader, most int64) (io.Reader, error) {
	in := &counter{r: src}
	buf := bufio.NewReader(in)
	if magic, _ := buf.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return &bounded{r: buf, most: most}, nil
	}
	z, err := gzip.NewReader(buf)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return &bounded{r: z, most: most, packed: in}, nil
}

// counter counts the bytes read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

type bounded struct {
	r      io.Reader
	n      int64
	most   int64
	packed *counter // nil: the file is not packed
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += int64(n)
	switch {
	case b.n > b.most:
		return 0, fmt.Errorf("the file is larger than %d MiB unpacked", b.most>>20)
	case b.packed != nil && b.n > freeBytes+maxRatio*b.packed.n:
		return 0, fmt.Errorf("the file unpacks to more than %d times the bytes read from it", maxRatio)
	}
	return n, err
}
