package question

import (
	"regexp"
	"strings"
)

var (
	// openerExpr is what a message begins with that goes on from the answer before it.
	openerExpr = regexp.MustCompile(`(?is)^(?:ok(?:ay)?|no|nope|yes|yeah|alright|fine|thanks|thank you|great)[,.!;: ]+(?:(?:and|but|so|then|now|please) )*(.+)$`)
	// questionStartExpr begins a question or a wish to see something.
	questionStartExpr = regexp.MustCompile(`(?i)^(?:what|which|where|why|when|who|how|show|give|list|tell|is|are|does|do|did|has|have|its|describe|logs?)(?:'s)?\b`)
	// correctionExpr replaces what the last question was about.
	correctionExpr = regexp.MustCompile("(?is)^(?:no|nope|not that|sorry|actually)?[,.!;: ]*(?:i|we) (?:meant|mean)(?: the)? +(.+?)[.?! ]*$")
)

// FollowUp is what a message says that begins with a word such as ok or no and asks something. A message that
// only agrees or refuses is none: ok is false.
func FollowUp(message string) (rest string, ok bool) {
	m := openerExpr.FindStringSubmatch(strings.TrimSpace(message))
	if m == nil || !questionStartExpr.MatchString(m[1]) {
		return "", false
	}
	return m[1], true
}

// Correction is what a message says was meant instead: "no, I meant web".
func Correction(message string) (meant string, ok bool) {
	m := correctionExpr.FindStringSubmatch(strings.TrimSpace(message))
	if m == nil {
		return "", false
	}
	return strings.Trim(m[1], "`\"'"), true
}
