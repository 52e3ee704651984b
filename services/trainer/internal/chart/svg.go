// Package chart draws the charts of a training as SVG: text and rectangles, no scripts, no embedded fonts. Each drawing
// contains both themes and follows the viewer's preference, also inside an <img>.
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// style names colours twice rather than by variables, which renderers outside browsers do not know.
const style = `.chart text{font:12px system-ui,sans-serif;fill:#334155}.chart .title{font-size:15px;font-weight:600;fill:#0f172a}` +
	`.chart .back{fill:#fff}.chart .bar{fill:#0e7490}.chart .none{fill:#eef2f6}.chart .line{stroke:#94a3b8;stroke-width:1;fill:none}` +
	`.chart .grid{stroke:#e2e8f0;stroke-width:1}.chart .mark{stroke:#c2410c;stroke-width:1.5;fill:none}.chart .cell{fill:#0f172a}` +
	`@media(prefers-color-scheme:dark){.chart text{fill:#cbd5e1}.chart .title{fill:#f1f5f9}.chart .back{fill:#0b1220}.chart .bar{fill:#22d3ee}` +
	`.chart .none{fill:#16202f}.chart .line{stroke:#64748b}.chart .grid{stroke:#1e293b}.chart .mark{stroke:#fb923c}.chart .cell{fill:#f8fafc}}`

// Size of a drawing, and the fields around its plot.
const (
	width                                 = 720.0
	top, right, bottom                    = 48.0, 24.0, 56.0
	charWidth                             = 6.8 // of the 12 px font, about
	titleBase                             = 24.0
	fontSize, tickLength, tickGap, rowGap = 12.0, 4.0, 7.0, 2.0
)

// drawing is an SVG under way.
type drawing struct {
	bytes.Buffer
	height float64
}

// newDrawing opens a drawing; screen readers read summary.
func newDrawing(height float64, title, summary string) *drawing {
	d := &drawing{height: height}
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 %g %g" width="%g" height="%g" role="img"><title>`, width, height, width, height)
	d.escape(title)
	d.WriteString("</title><desc>")
	d.escape(summary)
	d.WriteString("</desc><style>" + style + "</style>\n")
	d.rect("back", 0, 0, width, height, 0, "")
	d.text("title", width/2, titleBase, "middle", title)
	return d
}

func (d *drawing) close() []byte {
	d.WriteString("</svg>\n")
	return d.Bytes()
}

// escape writes text that may hold anything.
func (d *drawing) escape(s string) { _ = xml.EscapeText(d, []byte(s)) }

func (d *drawing) text(class string, x, y float64, anchor, s string) {
	fmt.Fprintf(d, `<text class="%s" x="%s" y="%s" text-anchor="%s">`, class, px(x), px(y), anchor)
	d.escape(s)
	d.WriteString("</text>\n")
}

// rotated is text along a vertical axis, read from below.
func (d *drawing) rotated(x, y float64, s string) {
	fmt.Fprintf(d, `<text transform="translate(%s %s) rotate(-90)" text-anchor="middle">`, px(x), px(y))
	d.escape(s)
	d.WriteString("</text>\n")
}

// rect with an opacity (0: the class's own) and a hint for the pointer.
func (d *drawing) rect(class string, x, y, w, h, opacity float64, hint string) {
	fmt.Fprintf(d, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, px(x), px(y), px(w), px(h))
	if opacity > 0 {
		fmt.Fprintf(d, ` opacity="%.2f"`, opacity)
	}
	if hint == "" {
		d.WriteString("/>\n")
		return
	}
	d.WriteString("><title>")
	d.escape(hint)
	d.WriteString("</title></rect>\n")
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(d, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, px(x1), px(y1), px(x2), px(y2))
}

// px rounds a length, so that the same chart has the same bytes on every processor.
func px(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// ticks are round numbers that divide lo..hi into about n intervals.
func ticks(lo, hi float64, n int) []float64 {
	if !(hi > lo) {
		return []float64{lo}
	}
	raw := (hi - lo) / float64(n)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*step >= raw {
			step *= m
			break
		}
	}
	var out []float64
	for k := math.Ceil(lo/step - 1e-9); k*step <= hi+1e-9*step; k++ {
		out = append(out, k*step)
	}
	return out
}

// logTicks are 0 and powers of ten between lo and hi, both at least 0.
func logTicks(lo, hi float64) []float64 {
	var out []float64
	if lo <= 0 {
		out = append(out, 0)
	}
	for v := 1.0; v <= hi*1.0001; v *= 10 {
		if v >= lo*0.9999 {
			out = append(out, v)
		}
	}
	if len(out) < 2 { // within one power
		return []float64{lo, hi}
	}
	return out
}

// number formats v in as few digits as identify it, with groups of thousands.
func number(v float64) string {
	if v == 0 || math.Abs(v) < 1e-12 {
		return "0"
	}
	if a := math.Abs(v); a >= 1e7 || a < 1e-3 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	s := strconv.FormatFloat(v, 'f', max(5-int(math.Floor(math.Log10(math.Abs(v)))), 0), 64)
	whole, fraction, _ := strings.Cut(s, ".")
	fraction = strings.TrimRight(fraction, "0")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		return whole + "." + fraction
	}
	return whole
}

// shorten cuts a label in the middle; the ends of the names of derived columns are the most informative.
func shorten(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	head := (most - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(most-1-head):])
}
