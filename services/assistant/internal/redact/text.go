package redact

import (
	"slices"
	"sync"
)

// maxPasses is how often a text is looked at until nothing more is found. A second look is needed where a mark brings a name
// and a value together; more have not been seen to be.
const maxPasses = 6

// maxEncodings is how many layers of base64 are opened.
const maxEncodings = 2

// Text takes out of s what is a secret by its form (PEM blocks, tokens of known services, password hashes, passwords in URLs
// and data source names), what stands beside a name like password, token, secret or key, in the notations of environments,
// flags, YAML, JSON, TOML, XML, command lines and logs, and the values of the Secrets that were read before. Escape
// sequences, invisible characters, percent and Unicode escapes and base64 hide none of these. What is no secret stays as it
// is. It rather takes too much than too little.
func Text(s string) string { return redactText(s, seen) }

// Typed is Text for what the asker wrote: it leaves alone what is a secret only because a Secret holds it. Otherwise the
// answer to a guess would tell whether some Secret has that value.
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

// findSecrets returns the secrets in s, in order; those of Secrets that were read, if set holds them.
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
