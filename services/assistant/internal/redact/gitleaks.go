package redact

import (
	_ "embed"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// gitleaksFile is the rule file of gitleaks v8.30.1, unchanged; gitleaks/LICENSE is its licence. See docs/decisions/0027.
//
//go:embed gitleaks/gitleaks.toml
var gitleaksFile string

// Unused rules of gitleaks: isTellingName and the rules below know more about names, with fewer errors in the output of
// a cluster.
var leftOut = wordSet("generic-api-key curl-auth-user curl-auth-header kubernetes-secret-yaml private-key jwt jwt-base64 sourcegraph-access-token")

// gitleaksRules parses the rules of gitleaks, as a second line of defence. Its allowlists of examples that are no leaks
// in a repository are not used: here anything that looks like a secret is one.
func gitleaksRules() []*rule {
	var rules []*rule
	for _, table := range strings.Split(gitleaksFile, "\n[[rules]]\n")[1:] {
		table, _, _ = strings.Cut(table, "\n[[rules.allowlists]]\n")
		if r := readGitleaks(table); r != nil {
			rules = append(rules, r)
		}
	}
	return rules
}

var (
	idLine      = regexp.MustCompile(`(?m)^id = "([^"]+)"`)
	exprLine    = regexp.MustCompile(`(?m)^regex = '''(.*)'''`)
	pathLine    = regexp.MustCompile(`(?m)^path = `)
	entropyLine = regexp.MustCompile(`(?m)^entropy = ([0-9.]+)`)
	groupLine   = regexp.MustCompile(`(?m)^secretGroup = ([0-9]+)`)
	keywordList = regexp.MustCompile(`(?ms)^keywords = \[(.*?)\]`)
	keywordExpr = regexp.MustCompile(`"([^"]+)"`)
)

// readGitleaks parses one table of the file. It returns nil for rules that match by file path and have no keyword.
func readGitleaks(table string) *rule {
	id, expr, list := firstGroup(idLine, table), firstGroup(exprLine, table), firstGroup(keywordList, table)
	if expr == "" || list == "" || leftOut[id] || pathLine.MatchString(table) {
		return nil
	}
	// This rule has a group around a repeated part, which is only a small part of the address.
	expr = strings.ReplaceAll(expr, "([a-z0-9]{4}-)", "(?:[a-z0-9]{4}-)")
	r := &rule{name: id, before: 256, after: 1024}
	for _, m := range keywordExpr.FindAllStringSubmatch(list, -1) {
		r.keywords = append(r.keywords, strings.ToLower(m[1]))
	}
	least, _ := strconv.ParseFloat(firstGroup(entropyLine, table), 64)
	group, _ := strconv.Atoi(firstGroup(groupLine, table))
	r.only = group
	if group == 0 {
		r.only = 1 // the first group that matched
	}
	r.form = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
	r.accept = func(_, value string) bool {
		return !isPlainValue(value) && (least == 0 || entropy(value) > least)
	}
	return r
}

func firstGroup(expr *regexp.Regexp, s string) string {
	if m := expr.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// entropy returns the Shannon entropy of s, in bits per byte.
func entropy(s string) float64 {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			share := float64(n) / float64(len(s))
			bits -= share * math.Log2(share)
		}
	}
	return bits
}
