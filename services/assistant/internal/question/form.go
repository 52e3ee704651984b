package question

import "regexp"

// forms are the kinds of answers that a diagnosis is not, each with the sentences that want one.
var forms = []struct {
	wanted string
	expr   *regexp.Regexp
}{
	{"when", Pattern(`^(so |and |but )?(when|how long|how old)\b|\bsince when\b|\band when\b`)},
	{"how many or how much", Pattern(`\bhow (many|much)\b`)},
	{"how things compare", Pattern(`\b(compare|compared|versus|vs)\b|\b(more|less|fewer|bigger|smaller) (\w+ )?than\b`)},
	{"what would happen", Pattern(`^(if|suppose|supposing) |\bif (i|we|you) \w+`)},
	{"whether it ever happened", Pattern(`\bever\b`)},
}

// Wanted returns what a sentence, in lower case, requests that no diagnosis states; empty if a diagnosis may answer it.
func Wanted(words string) string {
	for _, f := range forms {
		if f.expr.MatchString(words) {
			return f.wanted
		}
	}
	return ""
}
