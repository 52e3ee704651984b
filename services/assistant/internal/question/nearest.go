package question

import "github.com/mlp-platform/platform/services/assistant/internal/spelling"

// Costs of reading one word as another: typing errors are more likely than a different word.
const (
	transposed = iota + 1 // two letters swapped
	dropped               // one letter missing or extra
	replaced              // one letter replaced
	unlike
)

// IsMistyped reports whether a word most likely misspells another: by one letter.
func IsMistyped(word, meant string) bool { return mistyped(word, meant) < unlike }

// mistyped returns how unlikely it is that a word is a misspelling of another.
func mistyped(word, meant string) int {
	switch d := spelling.Distance(word, meant); {
	case d == 1 && len(word) == len(meant):
		if isTransposed(word, meant) {
			return transposed
		}
		if len(word) > 5 {
			return replaced
		}
	case d == 1 && len(word) > 3 && (len(word) < len(meant) || isDoubled(word, meant)): // "seen" is no misspelling of "see"
		return dropped
	}
	return unlike
}

func isTransposed(a, b string) bool {
	for i := range len(a) - 1 {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// isDoubled reports whether a word has one letter of another twice: failling.
func isDoubled(word, meant string) bool {
	for i := 1; i < len(word); i++ {
		if word[i] == word[i-1] && word[:i]+word[i+1:] == meant {
			return true
		}
	}
	return false
}

// NearestWord returns the word of the vocabulary that a misspelt word most likely means, or "". Short words resemble too
// many others.
func NearestWord(unknown string) string {
	if len(unknown) < 4 || isWhole(unknown) || isInflected(unknown) || isWhole(unknown+"s") {
		return ""
	}
	best, cost := "", unlike
	consider := func(word string) {
		if c := mistyped(unknown, word); c < cost || c == cost && c < unlike && word < best {
			best, cost = word, c
		}
	}
	for word := range learned.whole {
		if len(word) > 2 {
			consider(word)
		}
	}
	return best
}

// isMistypedKind reports whether a word, of which a rule reads only the beginning, most likely misspells a kind:
// deploymnet is no form of deploy.
func isMistypedKind(low string) bool {
	return !isWhole(low) && !isInflected(low) && kinds[NearestWord(low)] != ""
}

// IsOrdinary reports whether a word, in lower case, is one that rules read, or a form of one. It may still be a name.
func IsOrdinary(word string) bool { return isRead(word) || isInflected(word) }
