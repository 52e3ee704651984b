package dataset

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// rowReader reads records; [csv.Reader] is one.
type rowReader interface {
	// Read returns the next record, whose slice the next call may overwrite, or [io.EOF].
	Read() ([]string, error)
	// FieldPos returns where a field of the last record begins; both count from 1, the column in bytes.
	FieldPos(field int) (line, column int)
}

func newRowReader(src io.Reader, d modelrepo.Dialect) rowReader {
	if d.Quoting == modelrepo.QuotingNone {
		lines := bufio.NewScanner(src)
		lines.Buffer(make([]byte, 0, 4096), maxCSVRecord)
		return &lineReader{lines: lines, delimiter: string(d.Comma())}
	}
	r := csv.NewReader(src)
	r.ReuseRecord, r.Comma = true, d.Comma()
	return r
}

// lineReader takes each line for a record, and quotes for characters like others.
type lineReader struct {
	lines     *bufio.Scanner
	delimiter string
	line      int
	cells     []string
}

func (r *lineReader) Read() ([]string, error) {
	for r.lines.Scan() {
		r.line++
		text := r.lines.Text()
		if text == "" {
			continue
		}
		want := len(r.cells)
		r.cells = strings.Split(text, r.delimiter)
		if want > 0 && len(r.cells) != want {
			return nil, fmt.Errorf("line %d: %d cells, want %d", r.line, len(r.cells), want)
		}
		return r.cells, nil
	}
	switch err := r.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d: a record is longer than %d bytes", r.line+1, maxCSVRecord)
	case err != nil:
		return nil, err
	}
	return nil, io.EOF
}

func (r *lineReader) FieldPos(field int) (line, column int) {
	column = 1
	for _, cell := range r.cells[:field] {
		column += len(cell) + len(r.delimiter)
	}
	return r.line, column
}
