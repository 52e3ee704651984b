package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const hostile = `</text><script>alert("1")</script>&` + "\x00"

// For any names and numbers: well-formed, without scripts, every text within the drawing and no two overlapping.
func TestChartsAreLegible(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a_long_name_", 12)
	many := make([]string, 24)
	values, known := make([]float64, 24), make([]bool, 24)
	for i := range many {
		many[i], values[i], known[i] = strconv.Itoa(i), float64(i*i), i != 3
	}
	counts := [][]int{{1, 0, 7000}, {0, 12, 3}, {4, 4, 1}}
	for name, svg := range map[string][]byte{
		"grid":             Grid{Title: "A", X: "predicted (s)", Y: "actual (s)", Edges: []float64{0, 10, 1000, 90000}, Log: true, Counts: counts}.SVG(),
		"plain grid":       Grid{Title: "A", X: "predicted (W)", Y: "actual (W)", Edges: []float64{-3, 0, 3, 6}, Counts: counts}.SVG(),
		"narrow log grid":  Grid{Title: "A", X: "x", Y: "y", Edges: []float64{20, 22, 24, 26}, Log: true, Counts: counts}.SVG(),
		"matrix":           Matrix{Title: "A", X: "predicted label", Y: "actual label", Labels: []string{"low", long, hostile}, Counts: counts}.SVG(),
		"columns":          Columns{Title: "A", X: "hour", Y: "error", Names: many, Values: values, Hints: many, Known: known}.SVG(),
		"columns of 0":     Columns{Title: "A", X: "hour", Y: "error", Names: many, Values: make([]float64, 24), Hints: many, Known: known}.SVG(),
		"bars":             Bars{Title: hostile, X: "worse by", Names: []string{hostile, long, "b"}, Values: []float64{3, 0.5, -0.01}, Deviation: []float64{0.1, 0, 0.02}}.SVG(),
		"bars of 0":        Bars{Title: "A", X: "worse by", Names: []string{"a"}, Values: []float64{0}, Deviation: []float64{0}}.SVG(),
		"bars of one name": Bars{Title: "A", X: "worse by", Names: []string{"embedding"}, Values: []float64{121}, Deviation: []float64{4}}.SVG(),
	} {
		if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
			t.Errorf("%s: it holds a number that is none: %s", name, svg)
		}
		checkTexts(t, name, svg)
	}
}

// placed is a text with the field it is estimated to take.
type placed struct {
	text           string
	x1, x2, y1, y2 float64
}

func checkTexts(t *testing.T, name string, svg []byte) {
	t.Helper()
	var texts []placed
	var inside *placed
	var anchor string
	height := 0.0
	dec := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v in %s", name, err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			attr := map[string]string{}
			for _, a := range e.Attr {
				attr[a.Name.Local] = a.Value
			}
			switch e.Name.Local {
			case "svg":
				height, _ = strconv.ParseFloat(attr["height"], 64)
			case "script":
				t.Errorf("%s: it holds a script", name)
			case "text":
				if attr["transform"] != "" {
					continue // along an axis that has room
				}
				x, _ := strconv.ParseFloat(attr["x"], 64)
				y, _ := strconv.ParseFloat(attr["y"], 64)
				inside, anchor = &placed{x1: x, x2: x, y1: y - 9, y2: y}, attr["text-anchor"]
			}
		case xml.CharData:
			if inside != nil {
				inside.text += string(e)
			}
		case xml.EndElement:
			if e.Name.Local != "text" || inside == nil {
				continue
			}
			wide := 6.2 * float64(len([]rune(inside.text)))
			switch anchor {
			case "middle":
				inside.x1, inside.x2 = inside.x1-wide/2, inside.x2+wide/2
			case "end":
				inside.x1 -= wide
			default:
				inside.x2 += wide
			}
			texts, inside = append(texts, *inside), nil
		}
	}
	for i, a := range texts {
		if a.x1 < 0 || a.x2 > width || a.y1 < 0 || a.y2 > height {
			t.Errorf("%s: %q takes x %.0f to %.0f, y %.0f to %.0f; want within %g by %g", name, a.text, a.x1, a.x2, a.y1, a.y2, width, height)
		}
		for _, b := range texts[:i] {
			if a.x1 < b.x2 && b.x1 < a.x2 && a.y1 < b.y2 && b.y1 < a.y2 {
				t.Errorf("%s: %q and %q lie on each other", name, a.text, b.text)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lo, hi float64
		want   []float64
	}{
		{0, 1, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}}, {0, 37, []float64{0, 10, 20, 30}}, {-3, 6, []float64{-2, 0, 2, 4, 6}}, {5, 5, []float64{5}},
	} {
		got := ticks(c.lo, c.hi, 5)
		equal := slices.EqualFunc(got, c.want, func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
		if !equal {
			t.Errorf("ticks from %g to %g: got %v, want %v", c.lo, c.hi, got, c.want)
		}
	}
	if d := cmp.Diff([]float64{0, 1, 10, 100, 1000}, logTicks(0, 2500)); d != "" {
		t.Errorf("log ticks: %s", d)
	}
	for v, want := range map[float64]string{0: "0", 1499: "1,499", 0.25: "0.25", -1234567: "-1,234,567", 1e9: "1e+09", 0.00001: "1e-05"} {
		if got := number(v); got != want {
			t.Errorf("number(%s): got %s, want %s", fmt.Sprint(v), got, want)
		}
	}
}
