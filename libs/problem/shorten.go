package problem

import (
	"unicode/utf8"
)

// Limits of a document's texts, in bytes. Services shorten their quotes of a request where they quote it; these limits
// keep a place that forgot to from sending the request back.
const (
	maxDetail   = 2048
	maxField    = 512 // of each part of a loc, and of a msg
	maxParts    = 32  // of a loc; a request's own nesting may be a million deep
	maxInstance = 2048
)

// maxQuote is the length to which Shorten cuts: enough to recognise any sensible name.
const maxQuote = 128

// Shorten is a text of the request as an error quotes it: whole, or its first bytes and an ellipsis.
func Shorten(s string) string { return truncateText(s, maxQuote) }

// truncateText cuts between characters, so that valid UTF-8 stays valid.
func truncateText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// truncateFields copies the fields only if one of them is too long.
func truncateFields(fields []Field) []Field {
	long := func(f Field) bool {
		for _, part := range f.Loc {
			if len(part) > maxField {
				return true
			}
		}
		return len(f.Msg) > maxField || len(f.Loc) > maxParts
	}
	for i, f := range fields {
		if !long(f) {
			continue
		}
		out := append([]Field(nil), fields...)
		for ; i < len(out); i++ {
			loc := append([]string(nil), out[i].Loc[:min(len(out[i].Loc), maxParts)]...)
			for j := range loc {
				loc[j] = truncateText(loc[j], maxField)
			}
			out[i] = Field{Loc: loc, Msg: truncateText(out[i].Msg, maxField)}
		}
		return out
	}
	return fields
}
