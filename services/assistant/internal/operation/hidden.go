package operation

import "unicode"

// Hidden reports characters that cannot be seen, or that make others look as if they
// stood elsewhere: whoever reads a text with them approves another one. Line feeds and
// tabs are none.
func Hidden(r rune) bool {
	return r != '\n' && r != '\t' && (r == stopSign || unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector))
}

// stopSign is a character by which a terminal client tells a request for approval.
const stopSign = '\U0001F6D1'
