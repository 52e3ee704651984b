package redact

import (
	"regexp"
	"strings"
)

// pem matches blocks, also with line feeds as \n, and what is left of one that was cut at either end.
var pem = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?-----END [A-Z0-9 ]+-----` +
	`|-----BEGIN [A-Z0-9 ]+-----(?:[A-Za-z0-9+/=\s]|\\[rn])*` +
	`|[A-Za-z0-9+/=\s]*-----END [A-Z0-9 ]+-----`)

// tokens matches what is a credential by its form alone.
var tokens = regexp.MustCompile(strings.Join([]string{
	`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`, // JWT
	`\b(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}\b`,              // AWS
	`\bAIza[A-Za-z0-9_-]{35}`,                                        // Google
	`\bya29\.[A-Za-z0-9_-]{20,}`,
	`\bgh[pousr]_[A-Za-z0-9]{30,}`, // GitHub
	`\bgithub_pat_[A-Za-z0-9_]{22,}`,
	`\bgl(?:pat|ptt|dt|rt|soat)-[A-Za-z0-9_-]{16,}`,       // GitLab
	`\bxox[abeprs]-[A-Za-z0-9-]{10,}`,                     // Slack
	`\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}`,       // Stripe
	`\bsk-[A-Za-z0-9_-]{20,}`,                             // model services
	`\bhf_[A-Za-z0-9]{30,}`,                               // Hugging Face
	`\bnpm_[A-Za-z0-9]{30,}`,                              // npm
	`\bpypi-[A-Za-z0-9_-]{32,}`,                           // PyPI
	`\bdo[oprt]_v1_[a-f0-9]{32,}`,                         // DigitalOcean
	`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`,        // SendGrid
	`\bhv[sbr]\.[A-Za-z0-9_-]{20,}`,                       // Vault
	`\bki-(?:admin|op|ro)-[A-Za-z0-9._~+/=-]*[0-9A-Za-z]`, // this service
}, "|"))

// bearer matches the credential of an Authorization header.
var bearer = regexp.MustCompile(`(?i)\b(bearer[ \t]+)([A-Za-z0-9._~+/=-]{8,})|(authorization\\*["']?[ \t]*[:=][ \t]*\\*["']?(?:basic|digest|token|negotiate|apikey)[ \t]+)([^\s"'\\]+)`)

// userinfo matches user and password of a URL, up to the last at sign.
var userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>]*:)([^\s"'<>]+)@`)

// Text takes out of s what is a secret by its form (PEM blocks, JWTs, bearer and cloud keys, passwords in URLs) and
// what stands beside a name like password, token, secret or key, in the notations of environments, flags, YAML, JSON
// and logs. It rather takes too much than too little.
func Text(s string) string {
	s = pem.ReplaceAllStringFunc(s, whole)
	s = tokens.ReplaceAllStringFunc(s, whole)
	s = replace(bearer, s, func(m []string) string {
		if m[2] != "" && (len(m[2]) >= 16 || strings.ContainsAny(m[2], "0123456789")) {
			return m[1] + mark(len(m[2]))
		}
		if m[4] != "" && !strings.HasPrefix(m[4], "[redacted") {
			return m[3] + mark(len(m[4]))
		}
		return m[0]
	})
	s = replace(userinfo, s, func(m []string) string {
		port, _, path := strings.Cut(m[2], "/")
		if path && strings.Trim(port, "0123456789") == "" || strings.HasPrefix(m[2], "[redacted") {
			return m[0] // a port, and an at sign in the path
		}
		return m[1] + mark(len(m[2])) + "@"
	})
	return s
}

func whole(s string) string { return mark(len(s)) }

// replace is ReplaceAllStringFunc with the groups; one that took no part is empty.
func replace(re *regexp.Regexp, s string, by func(m []string) string) string {
	return re.ReplaceAllStringFunc(s, func(part string) string { return by(re.FindStringSubmatch(part)) })
}
