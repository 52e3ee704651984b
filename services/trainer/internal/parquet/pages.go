package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// chunk is a column within a row group.
type chunk struct {
	file *File
	leaf leaf
	as   Kind
	meta *format.ColumnMetaData
	rows int64
	into Values

	dict *values
	done int64     // rows begun
	list []float32 // of the row under way
	open bool
	null bool // the row under way has no list
}

func (c *chunk) read() error {
	at := c.meta.DataPageOffset
	if d := c.meta.DictionaryPageOffset; d > 0 && d < at {
		at = d
	}
	end := at + c.meta.TotalCompressedSize
	if at < 4 || c.meta.TotalCompressedSize < 0 || end < at || end > c.file.size {
		return errors.New("its pages lie outside the file")
	}
	if c.meta.Type != c.leaf.element.Type.V {
		return errors.New("its pages have another type than the schema")
	}
	var seen int64
	for seen < c.meta.NumValues {
		n, next, err := c.page(at, end)
		if err != nil {
			return fmt.Errorf("page at byte %d: %w", at, err)
		}
		at, seen = next, seen+n
	}
	if err := c.endRow(); err != nil {
		return err
	}
	if c.done != c.rows {
		return fmt.Errorf("its pages hold %d rows, the row group %d", c.done, c.rows)
	}
	return nil
}

// page reads the page there and returns how many values it has and where the next one begins.
func (c *chunk) page(at, end int64) (count, next int64, err error) {
	var h format.PageHeader
	length, err := c.header(at, end, &h)
	if err != nil {
		return 0, 0, err
	}
	at += length
	packed, size := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	if packed < 0 || size < 0 || packed > maxPage || size > maxPage || packed > end-at {
		return 0, 0, fmt.Errorf("it has %d bytes, %d unpacked; want at most %d, within the column", packed, size, maxPage)
	}
	if c.file.unpacked += size; c.file.unpacked > maxUnpacked {
		return 0, 0, fmt.Errorf("the file has more than %d MiB unpacked", maxUnpacked>>20)
	}
	raw := make([]byte, packed)
	if _, err := c.file.r.ReadAt(raw, at); err != nil {
		return 0, 0, err
	}
	next = at + packed
	switch h.Type {
	case format.DictionaryPage:
		return 0, next, c.readDictionary(&h, raw)
	case format.DataPage:
		n := h.DataPageHeader.V.NumValues
		if err := c.checkCount(n); err != nil {
			return 0, 0, err
		}
		return int64(n), next, c.readV1(&h, raw)
	case format.DataPageV2:
		n := h.DataPageHeaderV2.V.NumValues
		if err := c.checkCount(n); err != nil {
			return 0, 0, err
		}
		return int64(n), next, c.readV2(&h, raw)
	case format.IndexPage:
		return 0, next, nil
	}
	return 0, 0, fmt.Errorf("its type %d is unknown", h.Type)
}

// header reads the page's header there and returns its length.
func (c *chunk) header(at, end int64, h *format.PageHeader) (length int64, err error) {
	if at == end {
		return 0, errors.New("there are fewer pages than values")
	}
	// Nearly all headers are short; those with long statistics are read again.
	for _, most := range []int64{4 << 10, maxHeader} {
		head := make([]byte, min(most, end-at))
		if _, err := c.file.r.ReadAt(head, at); err != nil {
			return 0, err
		}
		n, err := scanStruct(head)
		if errors.Is(err, errTruncated) && most < maxHeader && most < end-at {
			continue
		}
		if err != nil {
			return 0, err
		}
		return int64(n), unmarshal(head[:n], h)
	}
	return 0, errTruncated
}

// checkCount limits the values of a page before they are allocated.
func (c *chunk) checkCount(n int32) error {
	if n <= 0 || n > maxPageValues {
		return fmt.Errorf("it declares %d values; want 1 to %d", n, maxPageValues)
	}
	if c.leaf.maxRep == 0 && int64(n) > c.rows-c.done {
		return errors.New("it has more values than the row group has rows")
	}
	return c.into.Reserve(int(n))
}

func (c *chunk) readDictionary(h *format.PageHeader, raw []byte) error {
	d := h.DictionaryPageHeader.V
	if c.dict != nil {
		return errors.New("the column has a second dictionary")
	}
	if d.NumValues < 0 || d.NumValues > maxPageValues {
		return fmt.Errorf("the dictionary declares %d values; want at most %d", d.NumValues, maxPageValues)
	}
	data, err := unpack(c.meta.Codec, raw, int(h.UncompressedPageSize))
	if err != nil {
		return err
	}
	dict, err := decodePlain(c.leaf, c.as, data, int(d.NumValues))
	c.dict = &dict
	return err
}

func (c *chunk) readV1(h *format.PageHeader, raw []byte) error {
	d := h.DataPageHeader.V
	data, err := unpack(c.meta.Codec, raw, int(h.UncompressedPageSize))
	if err != nil {
		return err
	}
	n := int(d.NumValues)
	levels := func(maxLevel int) ([]uint8, error) {
		if maxLevel == 0 {
			return nil, nil
		}
		if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
			return nil, errTruncatedPage
		}
		length := int(binary.LittleEndian.Uint32(data))
		out, err := decodeLevels(data[4:4+length], maxLevel, n)
		data = data[4+length:]
		return out, err
	}
	if c.leaf.maxDef > 0 && d.DefinitionLevelEncoding != format.RLE || c.leaf.maxRep > 0 && d.RepetitionLevelEncoding != format.RLE {
		return errors.New("its levels are not encoded as RLE")
	}
	rep, err := levels(c.leaf.maxRep)
	if err != nil {
		return err
	}
	def, err := levels(c.leaf.maxDef)
	if err != nil {
		return err
	}
	return c.emit(d.Encoding, data, rep, def, n)
}

func (c *chunk) readV2(h *format.PageHeader, raw []byte) error {
	d := h.DataPageHeaderV2.V
	r, l := int(d.RepetitionLevelsByteLength), int(d.DefinitionLevelsByteLength)
	if r < 0 || l < 0 || r > len(raw) || l > len(raw)-r || r+l > int(h.UncompressedPageSize) {
		return errTruncatedPage
	}
	n := int(d.NumValues)
	var rep, def []uint8
	var err error
	if c.leaf.maxRep > 0 {
		if rep, err = decodeLevels(raw[:r], c.leaf.maxRep, n); err != nil {
			return err
		}
	}
	if c.leaf.maxDef > 0 {
		if def, err = decodeLevels(raw[r:r+l], c.leaf.maxDef, n); err != nil {
			return err
		}
	}
	data := raw[r+l:]
	if !d.IsCompressed.Valid || d.IsCompressed.V {
		if data, err = unpack(c.meta.Codec, data, int(h.UncompressedPageSize)-r-l); err != nil {
			return err
		}
	}
	return c.emit(d.Encoding, data, rep, def, n)
}

// emit decodes the values of a page and passes them on row by row.
func (c *chunk) emit(encoding format.Encoding, data []byte, rep, def []uint8, n int) error {
	held := n
	if def != nil {
		held = 0
		for _, d := range def {
			if int(d) == c.leaf.maxDef {
				held++
			}
		}
	}
	vals, err := c.decode(encoding, data, held)
	if err != nil {
		return err
	}
	at := 0
	for i := range n {
		present := def == nil || int(def[i]) == c.leaf.maxDef
		if c.as == Vector {
			if err := c.element(rep, def, i, present, &vals, at); err != nil {
				return err
			}
		} else {
			c.done++
			switch {
			case !present:
				err = c.into.Missing()
			case c.as == Number:
				err = c.into.Number(vals.numbers[at])
			default:
				err = c.into.Text(vals.texts[at])
			}
			if err != nil {
				return fmt.Errorf("row %d of the row group: %w", c.done, err)
			}
		}
		if present {
			at++
		}
	}
	return nil
}

// element adds one value to the vector under way, or begins the next one.
func (c *chunk) element(rep, def []uint8, i int, present bool, vals *values, at int) error {
	if rep[i] == 0 {
		if err := c.endRow(); err != nil {
			return err
		}
		if c.done == c.rows {
			return errors.New("its pages hold more rows than the row group")
		}
		c.done++
		c.open, c.null, c.list = true, !present, c.list[:0]
	} else if !c.open {
		return errors.New("its first value belongs to no row")
	}
	if present {
		c.list = append(c.list, float32(vals.numbers[at]))
		return nil
	}
	if c.leaf.optionalElement && int(def[i]) == c.leaf.maxDef-1 || rep[i] != 0 {
		return fmt.Errorf("row %d of the row group: an element of the vector is missing", c.done)
	}
	return nil
}

// endRow passes on the completed vector.
func (c *chunk) endRow() error {
	if c.as != Vector || !c.open {
		return nil
	}
	c.open = false
	var err error
	if c.null || len(c.list) == 0 {
		err = c.into.Missing()
	} else {
		err = c.into.Vector(c.list)
	}
	if err != nil {
		return fmt.Errorf("row %d of the row group: %w", c.done, err)
	}
	return nil
}

// zstdReader is shared: its memory is bounded, and DecodeAll may be called at once by several.
var zstdReader = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage))
})

// unpack returns exactly size bytes.
func unpack(codec format.CompressionCodec, raw []byte, size int) (out []byte, err error) {
	switch codec {
	case format.Uncompressed:
		out = raw
	case format.Snappy:
		n, serr := snappy.DecodedLen(raw)
		if serr != nil || n != size {
			return nil, errors.New("it does not unpack to the size that it says")
		}
		out, err = snappy.Decode(nil, raw)
	case format.Gzip:
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(raw)); err == nil {
			out, err = io.ReadAll(io.LimitReader(z, int64(size)+1))
		}
	case format.Zstd:
		var z *zstd.Decoder
		if z, err = zstdReader(); err == nil {
			out, err = z.DecodeAll(raw, nil)
		}
	default:
		return nil, fmt.Errorf("the compression %s is not read; write the file with snappy, gzip, zstd or none", codec)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if len(out) != size {
		return nil, errors.New("it does not unpack to the size that it says")
	}
	return out, nil
}
