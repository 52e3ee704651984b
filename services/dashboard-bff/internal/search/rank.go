package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Classes of a match; the better of label and id counts.
const (
	exact       = 100
	prefix      = 80
	wordPrefix  = 60
	substring   = 40
	subsequence = 20
)

// wordEnds separate the words of a label or id, beside blanks.
const wordEnds = " \t\n/-_.:"

// foldText normalizes text for comparison as a reader would: compatibility forms and case are folded.
func foldText(s string) string {
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s)))
}

// scoreText returns the class of a folded query in a folded text; 0 for no match.
func scoreText(text, query string) int {
	switch i := strings.Index(text, query); {
	case text == query:
		return exact
	case i == 0:
		return prefix
	case i > 0:
		for at := i; at >= 0; {
			if strings.IndexByte(wordEnds, text[at-1]) >= 0 {
				return wordPrefix
			}
			next := strings.Index(text[at+1:], query)
			if next < 0 {
				break
			}
			at += 1 + next
		}
		return substring
	case isSubsequence(text, query):
		return subsequence
	}
	return 0
}

// isSubsequence reports whether the characters of query occur in text in the same order.
func isSubsequence(text, query string) bool {
	for _, r := range text {
		if query == "" {
			return true
		}
		if first, size := utf8.DecodeRuneInString(query); r == first {
			query = query[size:]
		}
	}
	return query == ""
}

// match is an entry with its score.
type match struct {
	Entry
	source string
	score  int
}

// rank returns the best limit matches of a folded query, best first, ties by label, kind, id.
func rank(found map[string][]Entry, query string, limit int) []match {
	var matches []match
	for source, entries := range found {
		for _, e := range entries {
			if score := max(scoreText(e.foldedLabel, query), scoreText(e.foldedID, query)); score > 0 {
				matches = append(matches, match{e, source, score})
			}
		}
	}
	slices.SortFunc(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.Label, b.Label), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.ID, b.ID), strings.Compare(a.source, b.source), strings.Compare(a.URL, b.URL))
	})
	return matches[:min(limit, len(matches))]
}
