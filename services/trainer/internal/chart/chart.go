package chart

import (
	"fmt"
	"math"
)

// Grid is a chart of counts by two values on the same scale, with the line on which both are equal.
type Grid struct {
	Title, X, Y string
	// Edges of the intervals, rising, one more than there are; Log scales by log1p.
	Edges []float64
	Log   bool
	// Counts by row (y) and column (x).
	Counts [][]int
}

// SVG draws the grid.
func (g Grid) SVG() []byte {
	const side, left = 420.0, 110.0
	n := len(g.Counts)
	lo, hi := g.Edges[0], g.Edges[n]
	scale := func(v float64) float64 { return (v - lo) / (hi - lo) }
	marks := ticks(lo, hi, 5)
	if g.Log {
		a, b := math.Log1p(lo), math.Log1p(hi)
		scale = func(v float64) float64 { return (math.Log1p(v) - a) / (b - a) }
		marks = logTicks(lo, hi)
	}
	most, total := 1, 0
	for _, row := range g.Counts {
		for _, c := range row {
			most, total = max(most, c), total+c
		}
	}
	d := newDrawing(top+side+bottom, g.Title, fmt.Sprintf("%d test rows counted by %s and %s; on the diagonal line both are equal.", total, g.X, g.Y))
	base, cell := top+side, side/float64(n)
	d.rect("none", left, top, side, side, 0, "")
	for i, row := range g.Counts {
		for j, c := range row {
			if c == 0 {
				continue
			}
			hint := fmt.Sprintf("%d rows: %s %s to %s, %s %s to %s", c, g.X, number(round3(g.Edges[j])), number(round3(g.Edges[j+1])), g.Y, number(round3(g.Edges[i])), number(round3(g.Edges[i+1])))
			d.rect("bar", left+float64(j)*cell, base-float64(i+1)*cell, cell, cell, shade(c, most), hint)
		}
	}
	d.line("mark", left, base, left+side, top)
	for _, v := range marks {
		at := scale(v) * side
		d.line("line", left+at, base, left+at, base+tickLength)
		d.line("line", left-tickLength, base-at, left, base-at)
		d.text("", left+at, base+tickGap+fontSize, "middle", number(round3(v)))
		d.text("", left-tickGap, base-at+4, "end", number(round3(v)))
	}
	d.text("", left+side/2, base+44, "middle", g.X)
	d.rotated(24, top+side/2, g.Y)
	// The legend names the shade of one row and of the fullest cell.
	x := left + side + 28
	d.text("", x, top+fontSize, "start", "test rows in a cell")
	steps := []int{most, int(math.Round(math.Sqrt(float64(most)))), 1}
	for k, c := range steps {
		if k > 0 && c == steps[k-1] {
			continue
		}
		y := top + 26 + float64(k)*24
		d.rect("none", x, y, 16, 16, 0, "")
		d.rect("bar", x, y, 16, 16, shade(c, most), "")
		d.text("", x+24, y+12.5, "start", number(float64(c)))
	}
	d.line("mark", x, top+116, x+16, top+100)
	d.text("", x+24, top+112, "start", "equal")
	return d.close()
}

// shade of a count, by its logarithm, so that a single row is still visible next to thousands.
func shade(count, most int) float64 {
	if most <= 1 {
		return 1
	}
	return 0.15 + 0.85*math.Log(float64(count))/math.Log(float64(most))
}

func round3(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*unit) / unit
}

// Matrix is a chart of counts by actual and predicted label, shaded by the share of the actual label.
type Matrix struct {
	Title, X, Y string
	Labels      []string
	// Counts by row (y, from above) and column (x).
	Counts [][]int
}

// SVG draws the matrix. Even the fullest cell stays pale enough for its number to be read.
func (m Matrix) SVG() []byte {
	n := len(m.Labels)
	label, rowHeight := 0, math.Max(18, math.Min(56, 420/float64(n)))
	for _, l := range m.Labels {
		label = max(label, len([]rune(shorten(l, 22))))
	}
	left := 44 + float64(label)*charWidth + tickGap
	wide := (width - right - left) / float64(n)
	d := newDrawing(top+float64(n)*rowHeight+bottom, m.Title, "Test rows counted by "+m.Y+" and "+m.X+".")
	for i, row := range m.Counts {
		sum := 0
		for _, c := range row {
			sum += c
		}
		y := top + float64(i)*rowHeight
		d.text("", left-tickGap, y+rowHeight/2+4, "end", shorten(m.Labels[i], 22))
		for j, c := range row {
			x := left + float64(j)*wide
			share := float64(c) / math.Max(float64(sum), 1)
			d.rect("none", x, y, wide-rowGap, rowHeight-rowGap, 0, "")
			if c > 0 {
				d.rect("bar", x, y, wide-rowGap, rowHeight-rowGap, 0.08+0.47*share, fmt.Sprintf("actual %s, predicted %s: %d rows", m.Labels[i], m.Labels[j], c))
			}
			switch text := fmt.Sprintf("%s (%.0f %%)", number(float64(c)), 100*share); {
			case rowHeight < 16: // no room
			case float64(len(text))*charWidth < wide-6:
				d.text("cell", x+wide/2, y+rowHeight/2+4, "middle", text)
			case float64(len(number(float64(c))))*charWidth < wide-4:
				d.text("cell", x+wide/2, y+rowHeight/2+4, "middle", number(float64(c)))
			}
		}
	}
	base := top + float64(n)*rowHeight
	for j, l := range m.Labels {
		d.text("", left+(float64(j)+0.5)*wide, base+fontSize+4, "middle", shorten(l, max(int(wide/charWidth)-1, 3)))
	}
	d.text("", left+(width-right-left)/2, base+44, "middle", m.X)
	d.rotated(24, top+(base-top)/2, m.Y)
	return d.close()
}

// Columns is a chart of one value for each of a few names in their order.
type Columns struct {
	Title, X, Y string
	Names       []string
	Values      []float64
	// Hints name each column's value for the pointer; Known columns have one at all.
	Hints []string
	Known []bool
}

// SVG draws the columns.
func (c Columns) SVG() []byte {
	const left, tall = 84.0, 260.0
	high := 0.0
	for i, v := range c.Values {
		if c.Known[i] {
			high = math.Max(high, v)
		}
	}
	if high == 0 {
		high = 1
	}
	marks := ticks(0, high*1.05, 5)
	high = math.Max(high*1.05, marks[len(marks)-1])
	d := newDrawing(top+tall+bottom, c.Title, c.Y+" by "+c.X+".")
	base, wide := top+tall, (width-right-left)/float64(len(c.Names))
	for _, v := range marks {
		y := base - v/high*tall
		d.line("grid", left, y, width-right, y)
		d.text("", left-tickGap, y+4, "end", number(round3(v)))
	}
	for i, name := range c.Names {
		x := left + float64(i)*wide
		if c.Known[i] {
			h := c.Values[i] / high * tall
			d.rect("bar", x+rowGap, base-h, wide-2*rowGap, h, 0, c.Hints[i])
		}
		d.text("", x+wide/2, base+fontSize+4, "middle", name)
	}
	d.line("line", left, base, width-right, base)
	d.text("", left+(width-right-left)/2, base+44, "middle", c.X)
	d.rotated(24, top+tall/2, c.Y)
	return d.close()
}

// Bars is a chart of one value for each of many names, one below the other, with its deviation.
type Bars struct {
	Title, X          string
	Names             []string
	Values, Deviation []float64
}

// SVG draws the bars.
func (b Bars) SVG() []byte {
	const rowHeight, longest = 20.0, 44
	label, lo, hi := 0, 0.0, 0.0
	for i, v := range b.Values {
		label = max(label, len([]rune(shorten(b.Names[i], longest))))
		lo, hi = math.Min(lo, v-b.Deviation[i]), math.Max(hi, v+b.Deviation[i])
	}
	if hi == lo {
		hi = 1
	}
	left := 20 + float64(label)*charWidth + tickGap
	scale := func(v float64) float64 { return left + (v-lo)/(hi-lo)*(width-right-left) }
	base := top + float64(len(b.Names))*rowHeight
	d := newDrawing(base+bottom, b.Title, b.X+", by feature, highest first.")
	for _, v := range ticks(lo, hi, 5) {
		d.line("grid", scale(v), top, scale(v), base)
		d.text("", scale(v), base+fontSize+4, "middle", number(round3(v)))
	}
	for i, v := range b.Values {
		y := top + float64(i)*rowHeight
		d.text("", left-tickGap, y+rowHeight/2+4, "end", shorten(b.Names[i], longest))
		d.rect("bar", math.Min(scale(0), scale(v)), y+rowGap, math.Abs(scale(v)-scale(0)), rowHeight-2*rowGap, 0,
			fmt.Sprintf("%s: %.4g ± %.2g", b.Names[i], v, b.Deviation[i]))
		d.line("mark", scale(v-b.Deviation[i]), y+rowHeight/2, scale(v+b.Deviation[i]), y+rowHeight/2)
	}
	d.line("line", scale(0), top, scale(0), base)
	d.text("", width/2, base+44, "middle", b.X) // longer than the plot is wide
	return d.close()
}
