// Package parquet reads columns of untrusted Apache Parquet files.
//
// The metadata is decoded by parquet-go; pages are decoded here, one at a time, because a page of a few bytes may
// declare billions of values and general readers allocate the declared number.
package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a file.
const (
	maxFooter = 4 << 20
	// MaxRows of a file.
	MaxRows = 5_000_000
	// maxPage limits a page before and after it is unpacked, in bytes; writers make pages of about 1 MiB.
	maxPage = 64 << 20
	// maxPageValues limits the values of a page, which may be far more than its bytes.
	maxPageValues = 4 << 20
	// maxUnpacked limits all pages that are read of a file, in bytes.
	maxUnpacked = 2 << 30
	// maxHeader of a page, with its statistics.
	maxHeader = 256 << 10
)

var magic = []byte("PAR1")

// Kind is the Go type of a column's values.
type Kind int

const (
	// Number reads integers, floats, booleans (0 and 1) and instants (seconds since 1970).
	Number Kind = iota
	// Text reads strings, and integers and booleans as they are written.
	Text
	// Vector reads lists of floats.
	Vector
)

// Values receives the values of a column, row by row.
type Values interface {
	// Reserve announces the number of rows and values of the column that come next; an error ends the reading.
	Reserve(values int) error
	Number(v float64) error
	// Text may be kept; equal values of a dictionary share their bytes.
	Text(s string) error
	// Vector is valid until the call returns.
	Vector(v []float32) error
	// Missing is a row without a value.
	Missing() error
}

// File is an opened file.
type File struct {
	r        io.ReaderAt
	size     int64
	meta     format.FileMetaData
	leaves   []leaf
	unpacked int64
}

// leaf is a column that holds values.
type leaf struct {
	name           string // of the field of the root
	element        *format.SchemaElement
	maxDef, maxRep int
	// optionalElement is set if a missing element of a list differs from a missing list.
	optionalElement bool
	nested          bool // more than one value below the root's field
}

// Open reads the file's metadata.
func Open(r io.ReaderAt, size int64) (*File, error) {
	tail := make([]byte, 8)
	if size < 12 {
		return nil, errors.New("this is no Parquet file: it is too short")
	}
	if _, err := r.ReadAt(tail, size-8); err != nil {
		return nil, err
	}
	if !bytes.Equal(tail[4:], magic) {
		if bytes.Equal(tail[4:], []byte("PARE")) {
			return nil, errors.New("the file is encrypted, which is not read")
		}
		return nil, errors.New("this is no Parquet file: it does not end in PAR1")
	}
	length := int64(binary.LittleEndian.Uint32(tail))
	if length > size-12 || length > maxFooter {
		return nil, fmt.Errorf("the footer has %d bytes; want at most %d, and no more than the file", length, maxFooter)
	}
	footer := make([]byte, length)
	if _, err := r.ReadAt(footer, size-8-length); err != nil {
		return nil, err
	}
	if _, err := scanStruct(footer); err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	f := &File{r: r, size: size}
	if err := unmarshal(footer, &f.meta); err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	if f.meta.NumRows < 0 || f.meta.NumRows > MaxRows {
		return nil, fmt.Errorf("more than %d rows", MaxRows)
	}
	return f, f.readSchema()
}

// unmarshal turns a panic of the decoder, which trusts its input, into an error.
func unmarshal(data []byte, into any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the metadata is not Thrift's compact protocol")
		}
	}()
	var protocol thrift.CompactProtocol
	if err := thrift.Unmarshal(&protocol, data, into); err != nil {
		return fmt.Errorf("the metadata cannot be decoded: %.200w", err)
	}
	return nil
}

// readSchema walks the tree, which the file stores as a list in depth-first order, and notes its leaves.
func (f *File) readSchema() error {
	elements := f.meta.Schema
	at := 0
	var walk func(depth int, l leaf) error
	walk = func(depth int, l leaf) error {
		if at >= len(elements) || depth > maxThriftDepth {
			return errors.New("the schema is cut off or nests too deeply")
		}
		e := &elements[at]
		at++
		if depth == 1 {
			l.name = e.Name
		}
		if depth > 0 {
			switch e.RepetitionType.V {
			case format.Optional:
				l.maxDef++
			case format.Repeated:
				l.maxDef++
				l.maxRep++
			}
		}
		children := int(e.NumChildren.V)
		if children == 0 && depth > 0 {
			l.element = e
			l.optionalElement = l.maxRep > 0 && depth > 1 && e.RepetitionType.V == format.Optional
			f.leaves = append(f.leaves, l)
			return nil
		}
		if children < 0 || children > len(elements)-at {
			return errors.New("the schema has fewer columns than it says")
		}
		l.nested = l.nested || depth > 0 && children > 1
		for range children {
			if err := walk(depth+1, l); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(0, leaf{})
}

// Rows is the number of rows of the file.
func (f *File) Rows() int { return int(f.meta.NumRows) }

// Names lists the columns.
func (f *File) Names() []string {
	var out []string
	for _, l := range f.leaves {
		if len(out) == 0 || out[len(out)-1] != l.name {
			out = append(out, l.name)
		}
	}
	return out
}

// ErrNoColumn means that the file has no column of a name.
var ErrNoColumn = errors.New("no such column")

// Read gives all values of a column to into.
func (f *File) Read(name string, as Kind, into Values) error {
	index := -1
	for i, l := range f.leaves {
		if l.name == name {
			index = i
			break
		}
	}
	if index < 0 {
		return ErrNoColumn
	}
	l := f.leaves[index]
	if err := l.check(as); err != nil {
		return err
	}
	var rows int64
	for i := range f.meta.RowGroups {
		g := &f.meta.RowGroups[i]
		if index >= len(g.Columns) || g.NumRows < 0 || g.NumRows > f.meta.NumRows-rows {
			return fmt.Errorf("row group %d does not fit the file's schema and number of rows", i+1)
		}
		rows += g.NumRows
		c := chunk{file: f, leaf: l, as: as, meta: &g.Columns[index].MetaData, rows: g.NumRows, into: into}
		if err := c.read(); err != nil {
			return fmt.Errorf("row group %d: %w", i+1, err)
		}
	}
	if rows != f.meta.NumRows {
		return fmt.Errorf("the row groups have %d rows, the file %d", rows, f.meta.NumRows)
	}
	return nil
}

// check reports whether the column can be read as that kind.
func (l leaf) check(as Kind) error {
	physical := l.element.Type.V
	ok := false
	switch as {
	case Number:
		switch physical {
		case format.Boolean, format.Int32, format.Int64, format.Float, format.Double:
			ok = !l.nested && l.maxRep == 0 && !l.isDecimal()
		}
	case Text:
		switch physical {
		case format.Boolean, format.Int32, format.Int64:
			ok = !l.nested && l.maxRep == 0 && !l.isDecimal() && l.instant() == nil
		case format.ByteArray:
			ok = !l.nested && l.maxRep == 0 && !l.isDecimal()
		}
	case Vector:
		ok = !l.nested && l.maxRep == 1 && (physical == format.Float || physical == format.Double)
	}
	if ok {
		return nil
	}
	want := map[Kind]string{Number: "a number", Text: "a category", Vector: "a vector"}[as]
	return fmt.Errorf("it is %s in the file, and the data set declares %s", l.describe(), want)
}

// describe names the type of a column as its file declares it.
func (l leaf) describe() string {
	name := l.element.Type.V.String()
	if logical := l.element.LogicalType.String(); logical != "" {
		name += " (" + logical + ")"
	}
	switch {
	case l.nested:
		return "a group of several columns"
	case l.maxRep > 1:
		return "lists of lists of " + name
	case l.maxRep == 1:
		return "lists of " + name
	}
	return strings.ToValidUTF8(name, "?")
}
