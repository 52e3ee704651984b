package redact

import (
	"slices"
	"sync"
)

// maxPasses limits the passes over a text until nothing more is found. A second pass is needed if a mark brings a name
// and a value together; no text is known that needs more.
const maxPasses = 6

// maxEncodings limits the layers of base64 that are decoded.
const maxEncodings = 2

// Text redacts secrets in s: by their form (PEM blocks, tokens of known services, password hashes, passwords in URLs
// and data source names), by an adjacent name such as password, token, secret or key, in the notations of environments,
// flags, YAML, JSON, TOML, XML, command lines and logs, and by equality with the values of Secrets read before. Escape
// sequences, invisible characters, percent and Unicode escapes and base64 hide none of these. All other text is
// unchanged. When in doubt it redacts.
func Text(s string) string { return redactText(s, seen) }

// Typed is Text for the user's input: it keeps values that are secret only because a Secret contains them. Otherwise
// the answer to a guess would reveal whether some Secret has that value.
func Typed(s string) string { return redactText(s, nil) }

func redactText(s string, set *known) string {
	for range maxPasses {
		spans := findSecrets(s, maxEncodings, set)
		if len(spans) == 0 {
			return s
		}
		s = replaceSpans(s, spans)
	}
	return s
}

var allRules = sync.OnceValue(func() *ruleSet {
	rules := append(formRules(), phraseRules()...)
	rules = append(append(rules, connectionRules()...), clientRules()...)
	return newRuleSet(append(rules, gitleaksRules()...))
})

// findSecrets returns the secrets in s, in order, including the values in set.
func findSecrets(s string, encodings int, set *known) []span {
	spans := findIn(s, encodings, set, nil)
	if plain := decodeNotations(s); plain != nil {
		for _, sp := range findIn(plain.text, encodings, set, nil) {
			if sp.from < sp.to && !isNoSecret(plain.text[sp.from:sp.to]) {
				spans = append(spans, plain.original(sp))
			}
		}
	}
	spans = slices.DeleteFunc(spans, func(sp span) bool { return sp.from < sp.to && isNoSecret(s[sp.from:sp.to]) })
	return mergeSpans(s, spans)
}

func findIn(s string, encodings int, set *known, spans []span) []span {
	spans = findPEM(s, spans)
	spans = findInManifests(s, spans)
	spans = allRules().find(s, spans)
	spans = findPairs(s, spans)
	spans = set.find(s, spans)
	if encodings > 0 {
		spans = findEncoded(s, encodings-1, set, spans)
	}
	return spans
}
