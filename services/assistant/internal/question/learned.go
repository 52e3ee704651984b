package question

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// learned are the words that the rules read: those of their patterns and sets. A word that no rule reads means nothing
// in a question unless the cluster has something with that name, so no list of English words is needed.
var learned = struct {
	// whole maps each word to whether a rule reads it alone; if not, only beside other words: api in "api keys".
	whole map[string]bool
	stems map[string]bool // words with any ending
}{map[string]bool{}, map[string]bool{}}

// Pattern compiles an expression over sentences in lower case, and learns its words.
func Pattern(expr string) *regexp.Regexp {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err) // part of the program
	}
	for _, end := range learnFrom(tree, []string{""}) {
		learn(end)
	}
	return regexp.MustCompile(expr)
}

// Words returns the set of the words in a blank-separated list, and learns them.
func Words(words string) map[string]bool {
	for w := range strings.FieldsSeq(words) {
		learn(w)
	}
	return setOf(words)
}

// open marks, in a word that is being learned, a place where a pattern takes any letters.
const open = "\x00"

// inPhrase precedes, in a word that is being learned, one that has others before it in its pattern.
const inPhrase = "\x01"

const shortestStem = 4

func learn(word string) {
	word, alone := strings.TrimPrefix(word, inPhrase), !strings.HasPrefix(word, inPhrase)
	stem, _, opened := strings.Cut(word, open)
	switch {
	case opened && len(stem) >= shortestStem:
		learned.stems[stem] = true
	case !opened && word != "":
		learned.whole[word] = learned.whole[word] || alone
	}
}

// learnFrom learns the words that a pattern completes. heads are the beginnings of words before it; the result is those
// after it.
func learnFrom(tree *syntax.Regexp, heads []string) []string {
	switch tree.Op {
	case syntax.OpLiteral:
		return appendRunes(heads, tree.Rune)
	case syntax.OpCharClass:
		const few = 4
		if contains(tree.Rune, ' ') && !contains(tree.Rune, 'a') {
			return appendRunes(heads, []rune{' '})
		}
		if len(tree.Rune) == 2 && tree.Rune[1]-tree.Rune[0] < few || len(tree.Rune) > 2 && len(tree.Rune) <= 2*few && isSingles(tree.Rune) {
			var tails []string
			for i := 0; i < len(tree.Rune); i += 2 {
				for r := tree.Rune[i]; r <= tree.Rune[i+1]; r++ {
					tails = append(tails, appendRunes(heads, []rune{r})...)
				}
			}
			return unique(tails)
		}
		return appendOpen(heads)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return appendOpen(heads)
	case syntax.OpWordBoundary:
		tails := slices.Clone(heads)
		for i, head := range heads {
			if learn(head); strings.TrimPrefix(head, inPhrase) != "" {
				tails[i] = inPhrase
			}
		}
		return unique(tails)
	case syntax.OpCapture:
		return learnFrom(tree.Sub[0], heads)
	case syntax.OpQuest, syntax.OpStar:
		return unique(append(learnFrom(tree.Sub[0], heads), heads...))
	case syntax.OpPlus, syntax.OpRepeat:
		return learnFrom(tree.Sub[0], heads)
	case syntax.OpConcat:
		for i, sub := range tree.Sub {
			if isOptionalBlank(sub) && !(i > 0 && i+1 < len(tree.Sub) && tree.Sub[i-1].Op == syntax.OpLiteral && tree.Sub[i+1].Op == syntax.OpLiteral) {
				heads = appendRunes(heads, []rune{' '}) // only "crash ?loop" is also one word
				continue
			}
			heads = learnFrom(sub, heads)
		}
	case syntax.OpAlternate:
		var tails []string
		for _, sub := range tree.Sub {
			tails = append(tails, learnFrom(sub, heads)...)
		}
		return unique(tails)
	}
	return heads
}

func isOptionalBlank(tree *syntax.Regexp) bool {
	if tree.Op != syntax.OpQuest && tree.Op != syntax.OpStar {
		return false
	}
	sub := tree.Sub[0]
	return sub.Op == syntax.OpLiteral && len(sub.Rune) == 1 && sub.Rune[0] == ' ' || sub.Op == syntax.OpCharClass && contains(sub.Rune, ' ') && !contains(sub.Rune, 'a')
}

// contains reports whether a rune is in the ranges of a class.
func contains(ranges []rune, r rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}

// isSingles reports whether the ranges of a class have one rune each.
func isSingles(ranges []rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] != ranges[i+1] {
			return false
		}
	}
	return true
}

func appendRunes(heads []string, runes []rune) []string {
	var tails []string
	for _, head := range heads {
		for _, r := range runes {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '\'' || r == '-' {
				head += string(unicode.ToLower(r))
				continue
			}
			if r == ' ' {
				head = inPhrase + strings.TrimPrefix(head, inPhrase)
				learn(head)
				head = inPhrase
				continue
			}
			learn(head)
			head = ""
		}
		tails = append(tails, head)
	}
	return unique(tails)
}

func appendOpen(heads []string) []string {
	tails := make([]string, len(heads))
	for i, head := range heads {
		tails[i] = strings.TrimSuffix(head, open) + open
	}
	return unique(tails)
}

func unique(list []string) []string {
	seen := map[string]bool{}
	var all []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	}
	return all
}

// isRead reports whether some rule reads a word, so that it is no name unless its place makes it one.
func isRead(low string) bool {
	if _, whole := learned.whole[low]; whole {
		return true
	}
	if !plainWordExpr.MatchString(low) {
		return false
	}
	for n := shortestStem; n <= len(low); n++ {
		if learned.stems[low[:n]] {
			return true
		}
	}
	return false
}

// isReadAlone reports whether some rule reads a word wherever it is.
func isReadAlone(low string) bool { return learned.whole[low] }

// isInflected reports whether a word is a form of one that a rule reads.
func isInflected(low string) bool {
	for _, suffix := range []string{"ing", "ed", "es", "s", "ly"} {
		stem, ok := strings.CutSuffix(low, suffix)
		if !ok || len(stem) < 3 {
			continue
		}
		if isWhole(stem) || isWhole(stem+"e") {
			return true
		}
		if n := len(stem); stem[n-1] == stem[n-2] && isWhole(stem[:n-1]) { // stopping
			return true
		}
	}
	return false
}

func isWhole(low string) bool { _, whole := learned.whole[low]; return whole }
