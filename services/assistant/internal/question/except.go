package question

import (
	"strings"
)

// exceptExpr matches the words before what a question excludes: "pods that are not in shop", "everything but media and
// crm".
var exceptExpr = Pattern(`\b(?:(everything|anything|everywhere|(?:all|every|any)(?: [a-z0-9-]+){0,4}) but|(?:that |which )?(?:are |is )?not (?:in|from|of|inside|on)|outside(?: of)?|except(?: for)?|other than|besides|apart from|aside from|excluding|but not|ignoring|leaving out|without (?:the ones|those|anything|everything)) `)

// between are the words that may stand between a word that excludes and a name: "the ones on", "those of the namespace".
var between = Words("the those one ones these that which are is running live living belonging to on from in of inside under anything everything called named")

// notThereExpr matches words that exclude a place; an object is not a place.
var notThereExpr = Pattern(`\bnot (in|from|of|inside|on) |\boutside `)

// LeavesOut reports whether a question, in lower case, may exclude something, and whether that can only be a place:
// "pods that are not in shop".
func LeavesOut(words string) (something, place bool) {
	found := exceptExpr.FindString(words)
	return found != "", notThereExpr.MatchString(found)
}

// exclusiveExpr matches the words of exceptExpr that always exclude something.
var exclusiveExpr = Pattern(`\b(?:except(?: for)?|other than|apart from|aside from|excluding|ignoring|leaving out|without (?:the ones|those|anything|everything)) .+`)

// UnreadExclusion returns the part of a question, in lower case, that excludes something, or "".
func UnreadExclusion(words string) string { return exclusiveExpr.FindString(words) }

// SplitExclusion separates the words of a question, in lower case, from the names it excludes. named reports whether a
// word is a name, which only the cluster knows. Without names nothing is excluded.
func SplitExclusion(words string, named func(word string) bool) (rest string, names []string) {
	at := exceptExpr.FindStringSubmatchIndex(words)
	if at == nil {
		return words, nil
	}
	after := strings.Fields(words[at[1]:])
	end := 0
list:
	for i, word := range after {
		switch {
		case named(word):
			names, end = append(names, word), i+1
		case between[word] || kindOf(word) != "" || len(names) > 0 && (word == "and" || word == "or" || word == "nor"):
		default:
			break list
		}
	}
	if len(names) == 0 {
		return words, nil
	}
	all := ""
	if at[2] >= 0 {
		all = words[at[2]:at[3]] // everything but
	}
	return strings.Join(strings.Fields(words[:at[0]]+" "+all+" "+strings.Join(after[end:], " ")), " "), names
}
