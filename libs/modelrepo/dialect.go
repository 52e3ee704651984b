package modelrepo

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/textfile"
)

// QuotingNone makes quotes ordinary characters of a cell.
const QuotingNone = "none"

// Dialect describes how CSV files differ from RFC 4180 in UTF-8: a decimal comma, semicolons, Latin-1.
type Dialect struct {
	// Encoding by a name of the WHATWG's Encoding Standard, such as windows-1252; empty is UTF-8, or the encoding of
	// the file's byte order mark.
	Encoding string `yaml:"encoding"`
	// Delimiter is one character; empty is a comma.
	Delimiter string `yaml:"delimiter"`
	// Decimal is the decimal sign of numbers: a dot, which empty is too, or a comma.
	Decimal string `yaml:"decimal"`
	// NAValues are cells that mean a missing value, as the empty one does.
	NAValues []string `yaml:"na_values"`
	// Quoting is empty for cells in double quotes, or QuotingNone.
	Quoting string `yaml:"quoting"`
}

// Comma is the delimiter.
func (d Dialect) Comma() rune {
	if r, size := utf8.DecodeRuneInString(d.Delimiter); size > 0 {
		return r
	}
	return ','
}

// DecimalComma reports whether numbers have a comma as their decimal sign.
func (d Dialect) DecimalComma() bool { return d.Decimal == "," }

// Missing reports whether a cell has no value.
func (d Dialect) Missing(cell string) bool { return cell == "" || slices.Contains(d.NAValues, cell) }

func (d Dialect) check(doc *document, format string) {
	if format != "csv" {
		for key, given := range map[string]bool{"encoding": d.Encoding != "", "delimiter": d.Delimiter != "", "decimal": d.Decimal != "",
			"na_values": len(d.NAValues) > 0, "quoting": d.Quoting != ""} {
			if given {
				doc.fault(key, "%s describes files of format csv", key)
			}
		}
		return
	}
	if d.Encoding != "" {
		if _, err := textfile.Canonical(d.Encoding); err != nil {
			doc.fault("encoding", "%v", err)
		}
	}
	switch r, size := utf8.DecodeRuneInString(d.Delimiter); {
	case d.Delimiter == "":
	case size != len(d.Delimiter) || r == utf8.RuneError || r == '"' || r == '\n' || r == '\r' || r == 0 || unicode.IsLetter(r) || unicode.IsDigit(r):
		doc.fault("delimiter", `delimiter %q must be one character that is no letter, digit or quote, such as ";", "|" or "\t"`, d.Delimiter)
	}
	switch {
	case d.Decimal != "" && d.Decimal != "." && d.Decimal != ",":
		doc.fault("decimal", `decimal %q; want "." or ","`, d.Decimal)
	case d.DecimalComma() && d.Comma() == ',' && d.Quoting == QuotingNone, !d.DecimalComma() && d.Comma() == '.':
		doc.fault(map[bool]string{true: "decimal", false: "delimiter"}[d.DecimalComma()], "the delimiter and the decimal sign are both %q", d.Comma())
	}
	if d.Quoting != "" && d.Quoting != QuotingNone {
		doc.fault("quoting", "quoting %q; leave it out for cells in double quotes, or say none", d.Quoting)
	}
}
