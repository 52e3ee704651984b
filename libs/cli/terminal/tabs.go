package terminal

import (
	"bufio"
	"io"
)

// Tabs writes one line a row, its cells separated by tabs: the form for a pipe. Cells are cleaned already, so that none
// holds a tab.
func Tabs(w io.Writer, cells [][]string) error {
	b := bufio.NewWriter(w)
	for _, row := range cells {
		for i, c := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(c)
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}
