package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// collected is a column as Read passes it on.
type collected struct {
	numbers []float64
	texts   []string
	vectors [][]float32
	held    int
}

func (c *collected) Reserve(values int) error {
	if c.held += values; c.held > 1<<22 {
		return errors.New("more values than the test wants")
	}
	return nil
}
func (c *collected) Number(v float64) error { c.numbers = append(c.numbers, v); return nil }
func (c *collected) Text(s string) error    { c.texts = append(c.texts, s); return nil }
func (c *collected) Vector(v []float32) error {
	c.vectors = append(c.vectors, slices.Clone(v))
	return nil
}
func (c *collected) Missing() error {
	c.numbers, c.texts, c.vectors = append(c.numbers, math.NaN()), append(c.texts, ""), append(c.vectors, nil)
	return nil
}

func open(t testing.TB, name string) *File {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Files written by pyarrow, in each supported page version, compression and encoding, hold the values given to it.
func TestFilesOfPyarrow(t *testing.T) {
	t.Parallel()
	null := func(i int, v float64) float64 {
		if i%7 == 3 {
			return math.NaN()
		}
		return v
	}
	numbers := map[string]func(i int) float64{
		"whole":    func(i int) float64 { return null(i, float64(i*3-50)) },
		"small":    func(i int) float64 { return float64(i % 5) },
		"unsigned": func(i int) float64 { return float64(math.MaxUint32 - i) },
		"float":    func(i int) float64 { return null(i, float64(i)/4) },
		"double":   func(i int) float64 { return float64(i) / 3 },
		"flag":     func(i int) float64 { return map[bool]float64{true: 1}[i%3 == 0] },
		"at":       func(i int) float64 { return 1_700_000_000.25 + float64(i) },
		"day":      func(i int) float64 { return float64(19_000+i) * 86400 },
	}
	for _, name := range []string{"plain-v1", "snappy-dict-v1", "zstd-dict-v2", "gzip-v2", "split"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, name+".parquet")
			if f.Rows() != 300 {
				t.Fatalf("%d rows, want 300", f.Rows())
			}
			for column, want := range numbers {
				var got collected
				if err := f.Read(column, Number, &got); err != nil || len(got.numbers) != 300 {
					t.Errorf("%s: %d values, %v; want 300", column, len(got.numbers), err)
					continue
				}
				for i, v := range got.numbers {
					if w := want(i); v != w && !(math.IsNaN(v) && math.IsNaN(w)) {
						t.Errorf("%s, row %d: %v, want %v", column, i, v, w)
					}
				}
			}
			var users, whole, emb collected
			if err := errors.Join(f.Read("user", Text, &users), f.Read("small", Text, &whole), f.Read("emb", Vector, &emb)); err != nil {
				t.Fatal(err)
			}
			for i := range 300 {
				user, vector := fmt.Sprintf("user %d ü", i%11), []float32{float32(i) / 2, -float32(i), 0.25}
				if i%7 == 3 {
					user, vector = "", nil
				}
				if users.texts[i] != user || whole.texts[i] != fmt.Sprint(i%5) || !slices.Equal(emb.vectors[i], vector) {
					t.Fatalf("row %d: %q %q %v; want %q %d %v", i, users.texts[i], whole.texts[i], emb.vectors[i], user, i%5, vector)
				}
			}
		})
	}
}

// Files written by parquet-go are read too, although its lists lack the levels that the format recommends.
func TestFilesOfParquetGo(t *testing.T) {
	t.Parallel()
	type row struct {
		Run   float64   `parquet:"run"`
		User  string    `parquet:"user,dict"`
		Emb   []float32 `parquet:"emb"`
		Maybe *int32    `parquet:"maybe,optional"`
	}
	var rows []row
	for i := range int32(100) {
		rows = append(rows, row{float64(i), fmt.Sprint(i % 3), []float32{float32(i), 1}, &i})
	}
	var buf bytes.Buffer
	w := pq.NewGenericWriter[row](&buf, pq.Compression(&pq.Zstd))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var run, user, emb, maybe collected
	if err := errors.Join(f.Read("run", Number, &run), f.Read("user", Text, &user), f.Read("emb", Vector, &emb), f.Read("maybe", Number, &maybe)); err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if run.numbers[i] != r.Run || user.texts[i] != r.User || !slices.Equal(emb.vectors[i], r.Emb) || maybe.numbers[i] != float64(i) {
			t.Fatalf("row %d: %v %v %v %v, want %+v", i, run.numbers[i], user.texts[i], emb.vectors[i], maybe.numbers[i], r)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, column string
		as           Kind
		want         string
	}{
		{"plain-v1", "user", Number, "it is BYTE_ARRAY (STRING) in the file, and the data set declares a number"},
		{"plain-v1", "double", Text, "it is DOUBLE in the file, and the data set declares a category"},
		{"plain-v1", "emb", Number, "it is lists of FLOAT in the file, and the data set declares a number"},
		{"plain-v1", "double", Vector, "it is DOUBLE in the file, and the data set declares a vector"},
		{"plain-v1", "pair", Number, "it is a group of several columns in the file"},
		{"plain-v1", "price", Number, "(DECIMAL(20,2)) in the file"},
		{"plain-v1", "gone", Number, "no such column"},
		{"delta", "whole", Number, "the encoding DELTA_BINARY_PACKED is not read; write the column as PLAIN or with a dictionary"},
		{"brotli", "whole", Number, "the compression BROTLI is not read; write the file with snappy, gzip, zstd or none"},
	} {
		t.Run(c.file+" "+c.column, func(t *testing.T) {
			t.Parallel()
			if err := open(t, c.file+".parquet").Read(c.column, c.as, &collected{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// Pages and footers of a few bytes that declare billions of values.
func TestClaims(t *testing.T) {
	run := []byte{0xfe, 0xff, 0xff, 0xff, 0x0f, 1}
	for name, read := range map[string]func() error{
		"a run of 2^31 indices": func() error {
			c := chunk{as: Number, dict: &values{numbers: []float64{1, 2}}}
			got, err := c.decodeIndices(append([]byte{1}, run...), 10)
			if len(got.numbers) != 10 {
				t.Errorf("%d values; want the 10 that the page has", len(got.numbers))
			}
			return err
		},
		"bit-packed groups beyond the page": func() error {
			_, err := decodeLevels([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0}, 1, 1000)
			if err == nil {
				t.Error("accepted; want a refusal")
			}
			return nil
		},
		"a footer with a list of 2^31": func() error {
			if _, err := scanStruct([]byte{0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07}); err == nil {
				t.Error("accepted; want a refusal")
			}
			return nil
		},
	} {
		hostiletest.CheckAllocation(t, 1<<20, func() {
			if err := read(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// For any bytes, reading ends in a refusal or in as many values as the file has rows, within the limits.
func FuzzParquet(f *testing.F) {
	for _, name := range []string{"plain-v1", "snappy-dict-v1", "zstd-dict-v2", "gzip-v2", "split"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".parquet"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 1<<20 {
			return
		}
		file, err := Open(bytes.NewReader(in), int64(len(in)))
		if err != nil {
			return
		}
		for _, name := range file.Names() {
			var n, s, v collected
			if file.Read(name, Number, &n) == nil && len(n.numbers) != file.Rows() {
				t.Fatalf("column %q has %d numbers of %d rows", name, len(n.numbers), file.Rows())
			}
			if file.Read(name, Text, &s) == nil && len(s.texts) != file.Rows() {
				t.Fatalf("column %q has %d texts of %d rows", name, len(s.texts), file.Rows())
			}
			if file.Read(name, Vector, &v) == nil && len(v.vectors) != file.Rows() {
				t.Fatalf("column %q has %d vectors of %d rows", name, len(v.vectors), file.Rows())
			}
		}
	})
}
