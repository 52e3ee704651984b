package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Metadata is decoded by a library that allocates the declared length of a list. scanStruct scans the bytes first, so
// that a list of a billion elements in a footer of a hundred bytes is refused before any allocation.
const (
	maxThriftDepth = 16
	// maxThriftItems in all lists of a structure; a column chunk has about ten.
	maxThriftItems = 100_000
)

var errTruncated = errors.New("the metadata is cut off")

type scanner struct {
	data  []byte
	at    int
	items int
}

// scanStruct returns the length of the struct, in Thrift's compact protocol, at the start of data.
func scanStruct(data []byte) (int, error) {
	s := scanner{data: data}
	err := s.structure(0)
	return s.at, err
}

func (s *scanner) byte() (byte, error) {
	if s.at >= len(s.data) {
		return 0, errTruncated
	}
	s.at++
	return s.data[s.at-1], nil
}

func (s *scanner) varint() (uint64, error) {
	v, n := binary.Uvarint(s.data[s.at:])
	if n <= 0 {
		return 0, errTruncated
	}
	s.at += n
	return v, nil
}

func (s *scanner) skip(n uint64) error {
	if n > uint64(len(s.data)-s.at) {
		return errTruncated
	}
	s.at += int(n)
	return nil
}

func (s *scanner) structure(depth int) error {
	if depth > maxThriftDepth {
		return fmt.Errorf("the metadata nests deeper than %d", maxThriftDepth)
	}
	for {
		head, err := s.byte()
		if err != nil || head == 0 {
			return err
		}
		if head>>4 == 0 { // the field's number does not fit into a delta
			if _, err := s.varint(); err != nil {
				return err
			}
		}
		if err := s.value(head&15, depth, false); err != nil {
			return err
		}
	}
}

// value skips a value of a type. A boolean of a struct is its type, of a list a byte.
func (s *scanner) value(kind byte, depth int, inList bool) error {
	switch kind {
	case 1, 2: // true, false
		if inList {
			return s.skip(1)
		}
		return nil
	case 3: // byte
		return s.skip(1)
	case 4, 5, 6: // integers
		_, err := s.varint()
		return err
	case 7: // double
		return s.skip(8)
	case 8: // binary
		n, err := s.varint()
		if err != nil {
			return err
		}
		return s.skip(n)
	case 9, 10: // list, set
		head, err := s.byte()
		if err != nil {
			return err
		}
		n := uint64(head >> 4)
		if n == 15 {
			if n, err = s.varint(); err != nil {
				return err
			}
		}
		return s.list(n, head&15, depth)
	case 12:
		return s.structure(depth + 1)
	}
	return fmt.Errorf("the metadata has a value of the unknown type %d", kind)
}

func (s *scanner) list(n uint64, kind byte, depth int) error {
	if n > uint64(maxThriftItems-s.items) {
		return fmt.Errorf("the metadata lists more than %d things", maxThriftItems)
	}
	s.items += int(n)
	for range n {
		if err := s.value(kind, depth+1, true); err != nil {
			return err
		}
	}
	return nil
}
