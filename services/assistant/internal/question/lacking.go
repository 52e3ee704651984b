package question

import "strings"

var (
	lackExpr = Pattern(` (?:(without)|(?:with|has|have) no|(?:do|does) not have|lack|lacks|lacking) (?:any |an? |the |their |its )?(?:own )?([a-z]+(?: [a-z]+){0,2}?)(?: in .+)?$`)
	thatExpr = Pattern(` (?:that|which)$`)
)

// agedExpr matches a word for the first or last created object of a kind.
var agedExpr = Pattern(`\b(oldest|newest|youngest)\b`)

// lacking reads a question for the objects of a kind that lack something, "which pods have no node": the kind, and the
// words for what they lack. Without one, kind is empty.
func lacking(low string) (kind string, words []string) {
	m := lackExpr.FindStringSubmatchIndex(low)
	if m == nil {
		return "", nil
	}
	head := low[:m[0]]
	if m[2] < 0 && !listExpr.MatchString(head) && !thatExpr.MatchString(head) {
		return "", nil // "the pods have no network" is a complaint
	}
	for word := range strings.FieldsSeq(head) {
		switch of := kindOf(word); {
		case of != "":
			kind = of
		case !functionWords[word] && !listExpr.MatchString(word):
			return "", nil // a name, or another condition
		}
	}
	return kind, strings.Fields(low[m[4]:m[5]])
}
