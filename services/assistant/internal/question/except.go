package question

import (
	"regexp"
	"strings"
)

// exceptExpr is what a question leaves out: "pods that are not in shop", "everything but media and crm". Only the cluster tells
// whether these words are namespaces; if not, it means something else.
var exceptExpr = regexp.MustCompile(`\b(?:(everything|anything|all|everywhere) but|(?:that |which )?(?:are |is )?not (?:in|from|of|inside)|outside(?: of)?|except(?: for| in| those in)?|other than|besides|apart from|aside from|excluding|but not(?: in)?|ignoring)` +
	` (?:the )?(?:namespaces? )?([a-z0-9][a-z0-9-]*)((?: (?:and|or|nor) (?:in )?[a-z0-9][a-z0-9-]*)*)`)

// SplitExclusion takes what a question leaves out from its words, in lower case. No names: it leaves out nothing.
func SplitExclusion(words string) (rest string, names []string) {
	at := exceptExpr.FindStringSubmatchIndex(words)
	if at == nil {
		return words, nil
	}
	part := func(i int) string {
		if at[2*i] < 0 {
			return ""
		}
		return words[at[2*i]:at[2*i+1]]
	}
	names, end := []string{part(2)}, at[5]
	for word := range strings.FieldsSeq(part(3)) {
		if word == "not" { // "and not ready"
			break
		}
		if word != "and" && word != "or" && word != "nor" && word != "in" {
			names, end = append(names, word), at[1]
		}
	}
	return strings.Join(strings.Fields(words[:at[0]]+" "+part(1)+" "+words[end:]), " "), names
}
