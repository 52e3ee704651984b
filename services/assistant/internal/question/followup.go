package question

import (
	"strings"
)

var (
	// openerExpr matches the beginning of a message that follows up on the previous answer.
	openerExpr = Pattern(`(?is)^(?:ok(?:ay)?|no|nope|yes|yeah|alright|fine|thanks|thank you|great)[,.!;: ]+(?:(?:and|but|so|then|now|please) )*(.+)$`)
	// questionStartExpr matches the beginning of a question or of a request to see something.
	questionStartExpr = Pattern(`(?i)^(?:what|which|where|why|when|who|how|show|give|list|tell|is|are|does|do|did|has|have|its|describe|logs?)(?:'s)?\b`)
	// correctionExpr matches a replacement for the subject of the last question.
	correctionExpr = Pattern("(?is)^(?:no|nope|not that|sorry|actually)?[,.!;: ]*(?:i|we) (?:meant|mean)(?: the)? +(.+?)[.?! ]*$")
)

// FollowUp returns the question in a message that begins with a word such as ok or no. A message that only agrees or
// refuses is none: ok is false.
func FollowUp(message string) (rest string, ok bool) {
	m := openerExpr.FindStringSubmatch(strings.TrimSpace(message))
	if m == nil || !questionStartExpr.MatchString(m[1]) {
		return "", false
	}
	return m[1], true
}

// Correction returns what a message gives as the right subject: "no, I meant web".
func Correction(message string) (meant string, ok bool) {
	m := correctionExpr.FindStringSubmatch(strings.TrimSpace(message))
	if m == nil {
		return "", false
	}
	return strings.Trim(m[1], "`\"'"), true
}
