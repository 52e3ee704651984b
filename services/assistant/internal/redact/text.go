package redact

import (
	"regexp"
	"strings"
)

// credentials are what is a secret by its form alone. The literal, which each has in it, spares most texts the
// expression.
var credentials = []struct {
	literal string
	form    *regexp.Regexp
}{
	{"eyJ", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`)}, // JWT
	{"AKIA", regexp.MustCompile(`\bAKIA[A-Z0-9]{16}\b`)},                                          // AWS
	{"ASIA", regexp.MustCompile(`\bASIA[A-Z0-9]{16}\b`)},
	{"AIza", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}`)}, // Google
	{"ya29.", regexp.MustCompile(`\bya29\.[A-Za-z0-9_-]{20,}`)},
	{"gh", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{30,}`)}, // GitHub
	{"github_pat_", regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{22,}`)},
	{"gl", regexp.MustCompile(`\bgl(?:pat|ptt|dt|rt|soat)-[A-Za-z0-9_-]{16,}`)}, // GitLab
	{"xox", regexp.MustCompile(`\bxox[abeprs]-[A-Za-z0-9-]{10,}`)},              // Slack
	{"hooks.slack.com", regexp.MustCompile(`\bhooks\.slack\.com/services/[A-Za-z0-9_/-]+`)},
	{"k_live_", regexp.MustCompile(`\b[sr]k_live_[A-Za-z0-9]{10,}`)}, // Stripe
	{"k_test_", regexp.MustCompile(`\b[sr]k_test_[A-Za-z0-9]{10,}`)},
	{"sk-", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`)},                             // model services
	{"hf_", regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}`)},                               // Hugging Face
	{"npm_", regexp.MustCompile(`\bnpm_[A-Za-z0-9]{30,}`)},                             // npm
	{"pypi-", regexp.MustCompile(`\bpypi-[A-Za-z0-9_-]{32,}`)},                         // PyPI
	{"_v1_", regexp.MustCompile(`\bdo[oprt]_v1_[a-f0-9]{32,}`)},                        // DigitalOcean
	{"SG.", regexp.MustCompile(`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`)},        // SendGrid
	{"hv", regexp.MustCompile(`\bhv[sbr]\.[A-Za-z0-9_-]{20,}`)},                        // Vault
	{"ki-", regexp.MustCompile(`\bki-(?:admin|op|ro)-[A-Za-z0-9._~+/=-]*[0-9A-Za-z]`)}, // this service
}

// header matches the credential of an Authorization header, with its scheme.
var header = regexp.MustCompile(`(?i)\b(bearer[ \t]+)([A-Za-z0-9._~+/=-]{8,})|` +
	`(authorization\\*["']?[ \t]*[:=][ \t]*\\*["']?(?:basic|digest|token|negotiate|apikey)[ \t]+)([^\s"'\\]+)`)

// userinfo matches user and password of a URL, up to the last at sign.
var userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>]*:)([^\s"'<>]+)@`)

// Text takes out of s what is a secret by its form (PEM blocks, JWTs, bearer and cloud keys, passwords in URLs) and
// what stands beside a name like password, token, secret or key, in the notations of environments, flags, YAML, JSON
// and logs. It rather takes too much than too little.
func Text(s string) string {
	s = redactManifests(redactPEM(s))
	for _, c := range credentials {
		if strings.Contains(s, c.literal) {
			s = c.form.ReplaceAllStringFunc(s, redactWhole)
		}
	}
	if strings.Contains(s, "://") {
		s = replaceGroups(userinfo, s, redactPassword)
	}
	s = redactPairs(redactPhrases(s))
	if lower := strings.ToLower(s); strings.Contains(lower, "bearer") || strings.Contains(lower, "authorization") {
		s = replaceGroups(header, s, redactCredential)
	}
	return s
}

func redactWhole(s string) string { return redactionMark(len(s)) }

func redactPassword(m []string) string {
	port, _, path := strings.Cut(m[2], "/")
	if path && strings.Trim(port, "0123456789") == "" {
		return m[0] // a port, and an at sign in the path
	}
	return m[1] + redactionMark(len(m[2])) + "@"
}

func redactCredential(m []string) string {
	switch {
	case len(m[2]) >= 16 || strings.ContainsAny(m[2], "0123456789"): // not the prose of "bearer authentication"
		return m[1] + redactionMark(len(m[2]))
	case m[4] != "" && !strings.HasPrefix(m[4], "[redacted"):
		return m[3] + redactionMark(len(m[4]))
	}
	return m[0]
}

// replaceGroups is ReplaceAllStringFunc with the groups; one that took no part is empty.
func replaceGroups(re *regexp.Regexp, s string, by func(m []string) string) string {
	return re.ReplaceAllStringFunc(s, func(part string) string { return by(re.FindStringSubmatch(part)) })
}
