package engine

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/spelling"
)

func UpperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// LowerFirst lower-cases the first word of a sentence that follows a colon, unless it is an abbreviation such as CPU.
func LowerFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if second, _ := utf8.DecodeRuneInString(s[size:]); size == 0 || unicode.IsUpper(second) {
		return s
	}
	return string(unicode.ToLower(first)) + s[size:]
}

// NearestName returns the single key that may have been meant: a few letters away, or with a word in common. Two
// equally near keys count as none.
func NearestName(want string, keys []string) (string, bool) {
	low, most := strings.ToLower(want), len(want)/3
	own := nameWords(low)
	best, at, twice := "", 0, false
	for _, key := range keys {
		other := strings.ToLower(key)
		d := most + 1 // at least: the lengths alone differ by that much
		if gap := len(low) - len(other); gap <= most && -gap <= most {
			d = spelling.Distance(low, other)
		}
		if d > most {
			if !shareWord(own, other) {
				continue
			}
			d = spelling.Distance(low, other)
		}
		if best == "" || d < at {
			best, at, twice = key, d, false
		} else if d == at {
			twice = true
		}
	}
	return best, best != "" && !twice
}

// nameWords returns the parts of a name that are long enough to be meaningful.
func nameWords(s string) []string {
	all := strings.FieldsFunc(s, isSeparator)
	return slices.DeleteFunc(all, func(word string) bool { return len(word) < 3 })
}

func isSeparator(r rune) bool { return strings.ContainsRune("_-./", r) }

func ValueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// formatDuration formats a duration in its largest unit.
func formatDuration(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return CountNoun(int(d.Seconds()), "second", "seconds")
	case d < 2*time.Hour:
		return CountNoun(int(d.Minutes()), "minute", "minutes")
	case d < 48*time.Hour:
		return CountNoun(int(d.Hours()), "hour", "hours")
	}
	return CountNoun(int(d.Hours()/24), "day", "days")
}

func HasResource(list corev1.ResourceList, kind corev1.ResourceName) bool {
	_, ok := list[kind]
	return ok
}

// shareWord reports whether a name contains one of these words.
func shareWord(own []string, other string) bool {
	return slices.ContainsFunc(own, func(word string) bool {
		if !strings.Contains(other, word) {
			return false
		}
		for part := range strings.FieldsFuncSeq(other, isSeparator) {
			if part == word {
				return true
			}
		}
		return false
	})
}
