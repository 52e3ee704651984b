package table

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Accept requests tables from an API server; one without support answers with objects.
const Accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// Table is rows under columns.
type Table struct {
	Columns []Column
	Rows    []Row
}

// Column is a heading; a wide one is shown only in wide output.
type Column struct {
	Name string
	Wide bool
}

// Row is one object. Cells without a column are never shown.
type Row struct {
	Namespace, Name string
	ResourceVersion string // empty if the server omits it
	Cells           []string
}

// Page is one page of a list, or one object.
type Page struct {
	Table
	Continue  string
	Remaining int64 // on later pages, if the server states it
}

// wire has the fields that a table, a list of objects and one object share.
type wire struct {
	Kind     string `json:"kind"`
	Metadata struct {
		metadata
		Continue  string `json:"continue"`
		Remaining *int64 `json:"remainingItemCount"`
	} `json:"metadata"`
	Columns []struct {
		Name     string `json:"name"`
		Priority int32  `json:"priority"`
	} `json:"columnDefinitions"`
	Rows []struct {
		Cells  []any `json:"cells"`
		Object struct {
			Metadata metadata `json:"metadata"`
		} `json:"object"`
	} `json:"rows"`
	Items []struct {
		Metadata metadata `json:"metadata"`
	} `json:"items"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Created   string `json:"creationTimestamp"`
	Version   string `json:"resourceVersion"`
}

// Decode reads a table. If the server made none, it reads the objects' names; the page then has the columns NAME and
// CREATED.
func Decode(answer []byte) (Page, error) {
	var w wire
	if err := json.Unmarshal(answer, &w); err != nil {
		return Page{}, fmt.Errorf("decode a list: %w", err)
	}
	p := Page{Continue: w.Metadata.Continue}
	if w.Metadata.Remaining != nil {
		p.Remaining = *w.Metadata.Remaining
	}
	if w.Kind != "Table" {
		p.Columns = []Column{{Name: "NAME"}, {Name: "CREATED"}}
		if !strings.HasSuffix(w.Kind, "List") {
			p.Rows = []Row{plainRow(w.Metadata.metadata)}
		}
		for _, item := range w.Items {
			p.Rows = append(p.Rows, plainRow(item.Metadata))
		}
		return p, nil
	}
	for _, c := range w.Columns {
		p.Columns = append(p.Columns, Column{Name: strings.ToUpper(c.Name), Wide: c.Priority > 0})
	}
	for _, r := range w.Rows {
		row := Row{Namespace: r.Object.Metadata.Namespace, Name: r.Object.Metadata.Name, ResourceVersion: r.Object.Metadata.Version}
		for _, cell := range r.Cells {
			row.Cells = append(row.Cells, formatCell(cell))
		}
		if row.Name == "" && len(row.Cells) > 0 {
			row.Name = row.Cells[0]
		}
		p.Rows = append(p.Rows, row)
	}
	return p, nil
}

func plainRow(m metadata) Row {
	return Row{Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.Version, Cells: []string{m.Name, m.Created}}
}

// zeroTime is what the API writes for a time that an object does not have.
const zeroTime = "0001-01-01T00:00:00Z"

// formatCell writes a cell as kubectl does.
func formatCell(cell any) string {
	switch v := cell.(type) {
	case nil:
		return "<none>"
	case string:
		if v == zeroTime {
			return "<unknown>" // a recording need not have the time
		}
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			return "<none>" // it came from JSON, so it can be encoded
		}
		return string(raw)
	}
}

// Line makes foreign text safe for one line: nothing in it can break out of the line or stay invisible, and it has at
// most so many characters.
func Line(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}
