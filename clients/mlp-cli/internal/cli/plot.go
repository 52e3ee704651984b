package cli

import (
	"fmt"
	"math"
	"strings"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
)

// plotDrift draws the recent predictions of each model with its baseline band (mean ± 2 standard deviations).
func (e *Env) plotDrift(rows []driftRow) error {
	const height = 8
	for _, d := range rows {
		recent := d.series()
		if len(recent) < 2 {
			continue
		}
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, v := range recent {
			lo, hi = min(lo, v), max(hi, v)
		}
		band := d.BaselineMean != nil && d.BaselineStd != nil
		if band {
			lo, hi = min(lo, *d.BaselineMean-2**d.BaselineStd), max(hi, *d.BaselineMean+2**d.BaselineStd)
		}
		if hi == lo {
			hi = lo + 1
		}
		level := func(v float64) int { return int((v - lo) / (hi - lo) * (height - 1)) }
		var b strings.Builder
		fmt.Fprintf(&b, "\n%s (%s): last %d predictions\n", d.Model, d.Alias, len(recent))
		for y := height - 1; y >= 0; y-- {
			label := ""
			switch y {
			case height - 1:
				label = output.Number(hi)
			case 0:
				label = output.Number(lo)
			}
			fmt.Fprintf(&b, "%10s │", label)
			inBand := band && y >= level(*d.BaselineMean-2**d.BaselineStd) && y <= level(*d.BaselineMean+2**d.BaselineStd)
			for _, v := range recent {
				switch {
				case level(v) == y:
					b.WriteString(" ●")
				case inBand:
					b.WriteString(" ·")
				default:
					b.WriteString("  ")
				}
			}
			b.WriteByte('\n')
		}
		if band {
			b.WriteString("            · baseline mean ± 2 standard deviations\n")
		}
		if _, err := fmt.Fprint(e.Out, b.String()); err != nil {
			return err
		}
	}
	return nil
}
