package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

var errTruncatedPage = errors.New("the page is cut off")

// values of a page or dictionary; one of the slices is used.
type values struct {
	numbers []float64
	texts   []string
}

func (l leaf) isDecimal() bool {
	_, logical := l.element.LogicalType.Value.(*format.DecimalType)
	return logical || l.element.ConvertedType.Valid && l.element.ConvertedType.V == deprecated.Decimal
}

func (l leaf) isUnsigned() bool {
	if t, ok := l.element.LogicalType.Value.(*format.IntType); ok {
		return !t.IsSigned
	}
	c := l.element.ConvertedType
	return c.Valid && (c.V == deprecated.Uint32 || c.V == deprecated.Uint64 || c.V == deprecated.Uint8 || c.V == deprecated.Uint16)
}

// instant turns an instant or a date into seconds; nil if the column holds neither.
func (l leaf) instant() func(v float64) float64 {
	per := func(units float64) func(float64) float64 { return func(v float64) float64 { return v / units } }
	days := func(v float64) float64 { return v * 86400 }
	switch t := l.element.LogicalType.Value.(type) {
	case *format.TimestampType:
		if t.Unit.Value != nil {
			return per(float64(time.Second / t.Unit.Value.Duration()))
		}
	case *format.DateType:
		return days
	}
	if c := l.element.ConvertedType; c.Valid {
		switch c.V {
		case deprecated.TimestampMillis:
			return per(1e3)
		case deprecated.TimestampMicros:
			return per(1e6)
		case deprecated.Date:
			return days
		}
	}
	return nil
}

// plainDictionary is the name that older writers use for format.RLEDictionary in data pages (Parquet, Encodings).
const plainDictionary format.Encoding = 2

// decode decodes n values of a data page.
func (c *chunk) decode(encoding format.Encoding, data []byte, n int) (values, error) {
	switch encoding {
	case format.Plain:
		return decodePlain(c.leaf, c.as, data, n)
	case plainDictionary, format.RLEDictionary:
		return c.decodeIndices(data, n)
	case format.RLE:
		if c.leaf.element.Type.V != format.Boolean {
			break
		}
		if len(data) < 4 {
			return values{}, errTruncatedPage
		}
		raw, err := decodeLevels(data[4:], 1, n)
		if err != nil {
			return values{}, err
		}
		var out values
		for _, b := range raw {
			out.add(c.as, b == 1)
		}
		return out, nil
	case format.ByteStreamSplit:
		if size := c.leaf.width(); size > 0 {
			if len(data) != n*size {
				return values{}, errTruncatedPage
			}
			joined := make([]byte, len(data))
			for i := range joined {
				joined[i] = data[i%size*n+i/size]
			}
			return decodePlain(c.leaf, c.as, joined, n)
		}
	}
	return values{}, fmt.Errorf("the encoding %s is not read; write the column as PLAIN or with a dictionary", encoding)
}

// decodeIndices looks up the page's indices in the dictionary.
func (c *chunk) decodeIndices(data []byte, n int) (values, error) {
	if n == 0 {
		return values{}, nil
	}
	if c.dict == nil {
		return values{}, errors.New("it refers to a dictionary that the column does not have")
	}
	if len(data) == 0 || data[0] > 32 {
		return values{}, errTruncatedPage
	}
	size := max(len(c.dict.numbers), len(c.dict.texts))
	var out values
	if c.as == Text {
		out.texts = make([]string, 0, n)
	} else {
		out.numbers = make([]float64, 0, n)
	}
	err := decodeHybrid(data[1:], int(data[0]), n, func(v uint32, times int) error {
		if uint64(v) >= uint64(size) {
			return errors.New("it refers to a value that the dictionary does not have")
		}
		for range times {
			if c.as == Text {
				out.texts = append(out.texts, c.dict.texts[v])
			} else {
				out.numbers = append(out.numbers, c.dict.numbers[v])
			}
		}
		return nil
	})
	return out, err
}

// decodeLevels decodes n levels of at most maxLevel.
func decodeLevels(data []byte, maxLevel, n int) ([]uint8, error) {
	out := make([]uint8, 0, n)
	err := decodeHybrid(data, bits.Len(uint(maxLevel)), n, func(v uint32, times int) error {
		if v > uint32(maxLevel) {
			return errors.New("it has a level that the schema does not have")
		}
		for range times {
			out = append(out, uint8(v))
		}
		return nil
	})
	return out, err
}

// decodeHybrid decodes n numbers of a width in bits, from runs of one value and bit-packed groups of eight, and passes
// them to tell.
func decodeHybrid(data []byte, width, n int, tell func(v uint32, times int) error) error {
	size := (width + 7) / 8
	for n > 0 {
		head, used := binary.Uvarint(data)
		if used <= 0 {
			return errTruncatedPage
		}
		data = data[used:]
		if head&1 == 0 {
			if len(data) < size {
				return errTruncatedPage
			}
			var v uint32
			for i := range size {
				v |= uint32(data[i]) << (8 * i)
			}
			data = data[size:]
			times := int(min(head>>1, uint64(n)))
			if times == 0 {
				return errors.New("it has a run of no values")
			}
			if err := tell(v, times); err != nil {
				return err
			}
			n -= times
			continue
		}
		groups := head >> 1
		count := n
		if groups < uint64(n) {
			count = min(n, int(groups)*8)
		}
		if groups == 0 || (count*width+7)/8 > len(data) {
			return errTruncatedPage
		}
		for i := range count {
			if err := tell(bitsAt(data, i*width, width), 1); err != nil {
				return err
			}
		}
		n -= count
		// The last group is padded, and by some writers cut off.
		data = data[min(int(min(groups, uint64(len(data))))*width, len(data)):]
	}
	return nil
}

// bitsAt is the number of width bits from a bit on, the lowest first.
func bitsAt(data []byte, at, width int) uint32 {
	var v uint64
	for i := at / 8; i < (at+width+7)/8; i++ {
		v |= uint64(data[i]) << (8 * (i - at/8))
	}
	return uint32(v >> (at % 8) & (1<<width - 1))
}

// width of a value in bytes; 0 if it differs.
func (l leaf) width() int {
	switch l.element.Type.V {
	case format.Int32, format.Float:
		return 4
	case format.Int64, format.Double:
		return 8
	}
	return 0
}

func decodePlain(l leaf, as Kind, data []byte, n int) (values, error) {
	var out values
	physical := l.element.Type.V
	switch {
	case physical == format.Boolean:
		if len(data) < (n+7)/8 {
			return out, errTruncatedPage
		}
		for i := range n {
			out.add(as, data[i/8]>>(i%8)&1 == 1)
		}
		return out, nil
	case physical == format.ByteArray:
		return decodeTexts(data, n)
	}
	size := l.width()
	if size == 0 || len(data) < n*size {
		return out, errTruncatedPage
	}
	seconds := l.instant()
	unsigned := l.isUnsigned()
	if as == Text {
		out.texts = make([]string, n)
	} else {
		out.numbers = make([]float64, n)
	}
	for i := range n {
		var whole int64
		var v float64
		b := data[i*size:]
		switch physical {
		case format.Float:
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case format.Double:
			v = math.Float64frombits(binary.LittleEndian.Uint64(b))
		case format.Int32:
			if whole = int64(int32(binary.LittleEndian.Uint32(b))); unsigned {
				whole = int64(uint32(whole))
			}
			v = float64(whole)
		default:
			if whole, v = int64(binary.LittleEndian.Uint64(b)), float64(int64(binary.LittleEndian.Uint64(b))); unsigned {
				v = float64(uint64(whole))
			}
		}
		switch {
		case as == Text && unsigned:
			out.texts[i] = strconv.FormatUint(uint64(whole), 10)
		case as == Text:
			out.texts[i] = strconv.FormatInt(whole, 10)
		case seconds != nil:
			out.numbers[i] = seconds(v)
		default:
			out.numbers[i] = v
		}
	}
	return out, nil
}

func decodeTexts(data []byte, n int) (values, error) {
	if n > len(data)/4 {
		return values{}, errTruncatedPage
	}
	out := values{texts: make([]string, n)}
	for i := range n {
		if len(data) < 4 {
			return out, errTruncatedPage
		}
		length := uint64(binary.LittleEndian.Uint32(data))
		if length > uint64(len(data)-4) {
			return out, errTruncatedPage
		}
		out.texts[i] = string(data[4 : 4+length])
		if !utf8.ValidString(out.texts[i]) {
			return out, errors.New("a text is no UTF-8")
		}
		data = data[4+length:]
	}
	return out, nil
}

func (v *values) add(as Kind, b bool) {
	switch {
	case as == Text:
		v.texts = append(v.texts, strconv.FormatBool(b))
	case b:
		v.numbers = append(v.numbers, 1)
	default:
		v.numbers = append(v.numbers, 0)
	}
}
