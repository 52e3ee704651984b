package redact

import "strings"

// formRules find secrets by their form alone, for the most common services. The rules of gitleaks cover more.
func formRules() []*rule {
	return []*rule{
		newRule("jwt", "eyj", `\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*|\.(?:\.[A-Za-z0-9_-]+)+)`, nil), // JWE has five parts; the second may be empty, as in a detached JWS
		newRule("aws", "akia|asia|abia|acca", `\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`, nil),
		newRule("google", "aiza", `\bAIza[A-Za-z0-9_-]{35}`, nil),
		newRule("google-oauth", "ya29.|gocspx-", `\bya29\.[A-Za-z0-9_-]{20,}|\bGOCSPX-[A-Za-z0-9_-]{20,}`, nil),
		newRule("github", "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_", `\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{22,}`, nil),
		newRule("gitlab", "glpat-|glptt-|gldt-|glrt-|glsoat-|glcbt-|glagent-", `\bgl(?:pat|ptt|dt|rt|soat|cbt|agent)-[A-Za-z0-9_-]{16,}`, nil),
		newRule("sourcegraph", "sgp_", `\bsgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}\b`, nil),
		newRule("slack", "xox|xapp-", `\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bxapp-[0-9]-[A-Za-z0-9-]{10,}`, nil),
		newRule("slack-hook", "hooks.slack.com", `\bhooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/-]+`, nil),
		newRule("discord-hook", "/api/webhooks/", `/api/webhooks/[0-9]+/([A-Za-z0-9_-]{20,})`, nil),
		newRule("telegram", ":aa", `\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}`, nil),
		newRule("stripe", "k_live_|k_test_|whsec_", `\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{16,}`, nil),
		newRule("model-service", "sk-", `\bsk-[A-Za-z0-9_-]{20,}`, nil),
		newRule("model-hub", "hf_|r8_|gsk_|nvapi-|xai-|pplx-", `\b(?:hf_|r8_|gsk_|nvapi-|xai-|pplx-)[A-Za-z0-9_-]{30,}`, nil),
		newRule("packages", "npm_|pypi-|dckr_", `\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{32,}|\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}`, nil),
		newRule("digitalocean", "_v1_", `\bdo[oprt]_v1_[a-f0-9]{32,}`, nil),
		newRule("sendgrid", "sg.", `\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, nil),
		newRule("vault", "hvs.|hvb.|hvr.", `\bhv[sbr]\.[A-Za-z0-9_-]{20,}`, nil),
		newRule("age", "age-secret-key-1", `(?i)\bAGE-SECRET-KEY-1[A-Z0-9]{50,}`, nil),
		newRule("own", "ki-", `\bki-(?:admin|op|ro)-[A-Za-z0-9._~+/=-]*[0-9A-Za-z]`, nil), // this service
		newRule("bearer", "bearer", `(?i)\bbearer[ \t]+([A-Za-z0-9._~+/=-]{8,})`, isBearer),
		newRule("authorization", "authorization", `(?i)authorization\\*["']?[ \t]*[:=][ \t]*\\*["']?(?:basic|digest|token|negotiate|apikey|aws4-hmac-sha256)[ \t]+([^\s"'\\]+)`, nil),
		newRule("userinfo", "://", `[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>]*:([^\s"'<>]+)@`, isURLPassword),
		newRule("web-user", "http://|https://", `(?i)\bhttps?://([^\s/:@"'<>?#]+)@`, func(_, user string) bool { return user != "git" }),
		newRule("crypt", "$1$|$5$|$6$|$7$|$2$|$2a$|$2b$|$2x$|$2y$|$y$|$gy$|$apr1$|$md5|$sha1$|$argon2|$scrypt$|$bcrypt|$pbkdf2|$p$|$h$|$ml$|$a$005$|$s$",
			`\${1,2}(?:1|5|6|7|2[abxy]?|y|gy|apr1|md5(?:,rounds=[0-9]+)?|sha1|argon2(?:id|i|d)|scrypt|bcrypt(?:-sha256)?|pbkdf2(?:-sha(?:1|256|512))?|P|H|S|ml|A)\${1,2}[A-Za-z0-9./,=$+*_-]{12,}`, nil),
		newRule("framework-hash", "pbkdf2|bcrypt_sha256$|argon2$|scrypt|sha1$|md5$|$sha$",
			`\b(?:pbkdf2_sha(?:1|256|512)|bcrypt_sha256|argon2|scrypt|sha1|md5)\$[A-Za-z0-9./,=$+*_-]{16,}|\b(?:scrypt|pbkdf2):[a-z0-9:]+\$[^\s"'$]+\$[0-9a-f]{16,}`, nil),
		newRule("ldap-hash", "{ssha|{sha|{md5|{smd5|{crypt|{pbkdf2|{argon2|{cleartext|{plain",
			`(?i)\{(?:S?SHA(?:256|384|512)?|S?MD5|CRYPT|PBKDF2[^}]*|ARGON2|CLEARTEXT|PLAIN(?:-[A-Z0-9]+)?)\}[^\s"'<>]{6,}`, nil),
		newRule("scram", "scram-sha-", `\bSCRAM-SHA-[0-9]+\$[0-9]+:[A-Za-z0-9+/=$:]{20,}`, nil),
		newRule("postgres-hash", "md5", `\bmd5[0-9a-f]{32}\b`, nil),
		newRule("mysql-hash", "*0|*1|*2|*3|*4|*5|*6|*7|*8|*9|*a|*b|*c|*d|*e|*f", `\*[0-9A-F]{40}\b`, nil),
		newRule("shadow", ":99999:|::::|:7:::", `(?m)^[a-z_][\w.-]*:([^:\s*!][^:\s]{9,}):[0-9]{0,5}:[0-9]*:[0-9]*:[0-9]*:`, nil),
		newRule("htpasswd", "htpasswd", `htpasswd[\s\S]*`, nil).near(16, 1024).inside(`(?m)(?:^|[\s"'|])[\w.@-]{1,32}:([./0-9A-Za-z]{13})(?:$|[\s"'])`),
		newRule("pgbouncer", "userlist", `userlist[\s\S]*`, nil).near(16, 1024).inside(`(?m)^[ \t]*"[^"\n]+"[ \t]+"([^"\n]+)"`),
		newRule("ntlm", ":::", `\b([0-9A-Fa-f]{32}:[0-9A-Fa-f]{32}):::`, nil),
	}
}

// isBearer reports whether the text after the word is a token, and not the prose of "bearer authentication".
func isBearer(_, value string) bool {
	return len(value) >= 16 || strings.ContainsAny(value, "0123456789")
}

// isURLPassword reports whether the text between a colon and an at sign is not a port with a path.
func isURLPassword(_, value string) bool {
	port, _, path := strings.Cut(value, "/")
	return !path || strings.Trim(port, "0123456789") != ""
}
