// Package hostiletest mutates and inflates valid inputs, deterministically for a seed, feeds them to a parser of
// external bytes, and measures the cost of parsing them.
package hostiletest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// File is one input of a table.
type File struct {
	// Kind groups inputs in the table.
	Kind string
	// Name describes how the input was made.
	Name string
	Data []byte
	// Then follows Body, Times over, which Write does not hold: the memory that is measured is the reader's.
	Body  string
	Times int
}

// Write puts the input where a reader finds it.
func (f *File) Write(w io.Writer) error {
	if _, err := w.Write(f.Data); err != nil || f.Times == 0 {
		return err
	}
	chunk := bytes.Repeat([]byte(f.Body), 1+(1<<20)/len(f.Body))
	for left := f.Times * len(f.Body); left > 0; left -= len(chunk) {
		if _, err := w.Write(chunk[:min(left, len(chunk))]); err != nil {
			return err
		}
	}
	return nil
}

// number matches numbers that a mutation replaces by another.
var number = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?`)

// oddNumbers are numbers that parsers disagree about, or that are larger than they look.
var oddNumbers = []string{
	"NaN", "nan", "Infinity", "-inf", "1e999", "-1e999", "1e-999", "-0", "00", "0x7fffffff", "1_000", "٣", "+1",
	"2147483648", "9223372036854775808", "18446744073709551616", "4294967295", strings.Repeat("9", 4000), "0." + strings.Repeat("0", 4000) + "1",
}

// oddBytes are put between others.
var oddBytes = []string{"\x00", "\xff\xfe", "\xc3", "\xed\xa0\x80", "\ufeff", "\u202e", "\x1b[2J", "\r", "\t", "\"", "'", "\\", "\n\n", ";", ",", ":", "#", "\x1f\x8b"}

// brackets are opened again and again.
var brackets = []string{"[", "{", "{\"a\":", "(", "- ", "? ", "<a>", "&a ", "!!x "}

// mutations of a sample, by name.
var mutations = []struct {
	name   string
	change func(r *rand.Rand, in []byte) []byte
}{
	{"truncated", func(r *rand.Rand, in []byte) []byte { return in[:r.IntN(len(in))] }},
	{"bits flipped", func(r *rand.Rand, in []byte) []byte {
		for range 1 + r.IntN(16) {
			in[r.IntN(len(in))] ^= 1 << r.IntN(8)
		}
		return in
	}},
	{"bytes replaced", func(r *rand.Rand, in []byte) []byte {
		at := r.IntN(len(in))
		for i := at; i < min(len(in), at+1+r.IntN(64)); i++ {
			in[i] = byte(r.Uint32())
		}
		return in
	}},
	{"odd bytes", func(r *rand.Rand, in []byte) []byte { return insertAt(r, in, oddBytes[r.IntN(len(oddBytes))]) }},
	{"odd number", func(r *rand.Rand, in []byte) []byte {
		found := number.FindAllIndex(in, -1)
		if len(found) == 0 {
			return insertAt(r, in, oddNumbers[r.IntN(len(oddNumbers))])
		}
		at := found[r.IntN(len(found))]
		return replaceRange(in, at[0], at[1], []byte(oddNumbers[r.IntN(len(oddNumbers))]))
	}},
	{"brackets", func(r *rand.Rand, in []byte) []byte {
		return insertAt(r, in, strings.Repeat(brackets[r.IntN(len(brackets))], 1<<(4+r.IntN(13))))
	}},
	{"part removed", func(r *rand.Rand, in []byte) []byte {
		from, to := part(r, in)
		return replaceRange(in, from, to, nil)
	}},
	{"part repeated", func(r *rand.Rand, in []byte) []byte {
		from, to := part(r, in)
		return replaceRange(in, from, to, bytes.Repeat(in[from:to], 2+r.IntN(1+(1<<20)/(1+to-from))))
	}},
	{"part moved", func(r *rand.Rand, in []byte) []byte {
		from, to := part(r, in)
		moved := bytes.Clone(in[from:to])
		return insertAt(r, replaceRange(in, from, to, nil), string(moved))
	}},
	{"line twice", func(r *rand.Rand, in []byte) []byte {
		lines := bytes.SplitAfter(in, []byte("\n"))
		at := r.IntN(len(lines))
		return insertAt(r, in, string(lines[at])+"\n"+string(lines[at]))
	}},
	{"endless line", func(r *rand.Rand, in []byte) []byte {
		return insertAt(r, in, strings.Repeat(string(rune('a'+r.IntN(26))), 1<<(16+r.IntN(6))))
	}},
	{"endless quote", func(r *rand.Rand, in []byte) []byte {
		return insertAt(r, in, "\""+strings.Repeat("a,\n", 1<<(14+r.IntN(6))))
	}},
}

func part(r *rand.Rand, in []byte) (from, to int) {
	from = r.IntN(len(in))
	return from, from + 1 + r.IntN(min(len(in)-from, 4096))
}

func replaceRange(in []byte, from, to int, by []byte) []byte {
	return bytes.Join([][]byte{in[:from], by, in[to:]}, nil)
}

func insertAt(r *rand.Rand, in []byte, text string) []byte {
	at := r.IntN(len(in) + 1)
	return replaceRange(in, at, at, []byte(text))
}

// Mutate returns n inputs derived from the samples, which must not be empty, by one to three mutations each. They are
// the same for a seed.
func Mutate(kind string, n int, seed uint64, samples ...[]byte) []File {
	r := rand.New(rand.NewPCG(seed, seed)) // #nosec G404 -- repeatable on purpose
	out := make([]File, n)
	for i := range out {
		data, name := bytes.Clone(samples[i%len(samples)]), ""
		for range 1 + r.IntN(3) {
			if len(data) == 0 {
				break
			}
			m := mutations[r.IntN(len(mutations))]
			data, name = m.change(r, data), name+", "+m.name
		}
		out[i] = File{Kind: kind, Name: fmt.Sprintf("%d%s", i, name), Data: data}
	}
	return out
}

// Gzip packs an input.
func Gzip(t testing.TB, f File) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := f.Write(z); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
