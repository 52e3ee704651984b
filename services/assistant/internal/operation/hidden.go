package operation

import "unicode"

// Hidden reports invisible or reordering characters, which could make a reader approve a different text; line feeds and
// tabs are allowed.
func Hidden(r rune) bool {
	return r != '\n' && r != '\t' && (r == stopSign || unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector))
}

// stopSign is a character by which a terminal client recognizes a request for approval.
const stopSign = '\U0001F6D1'
