package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
	"unicode/utf8"
)

// isKeyMaterial reports whether a value is a key by its shape alone: hex or base64 of at least 128 random bits that
// encodes no text.
func isKeyMaterial(value string) bool { return isHexKey(value) || isBase64Key(value) }

// Lengths of a key in characters. In hex they are those of keys and digests; base64 without padding is a key from 192
// bits.
const (
	leastPadded   = 22
	leastUnpadded = 32
	mostKey       = 512
)

// isHexKey reports whether a value is hex of the length of a key. Characters of one kind only make it a number or a
// mask.
func isHexKey(value string) bool {
	switch len(value) {
	case 32, 40, 48, 56, 64, 96, 128, 256:
	default:
		return false
	}
	digits, letters := 0, 0
	for i := range len(value) {
		switch {
		case value[i] >= '0' && value[i] <= '9':
			digits++
		case isHex(value[i]):
			letters++
		default:
			return false
		}
	}
	return digits > 0 && letters > 0 && entropy(value) > 2.8 // random hex has 3.5 or more
}

var digestPrefix = regexp.MustCompile(`^(?i:sha[0-9]{1,3}|md5)-`)

// isBase64Key reports whether a value is base64 that encodes no text.
func isBase64Key(value string) bool {
	code := strings.TrimRight(value, "=")
	padding := len(value) - len(code)
	if padding > 2 || len(code) > mostKey || len(code) < leastPadded || padding == 0 && len(code) < leastUnpadded || digestPrefix.MatchString(value) {
		return false
	}
	for i := range len(code) {
		if !inBase64[code[i]] {
			return false
		}
	}
	return isRandomMix(code, padding > 0 && len(value)%4 == 0) && !isEncodedText(code)
}

// isRandomMix reports whether letters of both cases and digits alternate as they do by chance: 0.64 times a character,
// and far less often where words and paths are joined to one name. With padding it cannot be a name, and less is
// enough: one short code in forty has no digit.
func isRandomMix(code string, padded bool) bool {
	var seen [4]int
	changes, last := 0, -1
	for i := range len(code) {
		kind := 3
		switch c := code[i]; {
		case c >= 'a' && c <= 'z':
			kind = 0
		case c >= 'A' && c <= 'Z':
			kind = 1
		case c >= '0' && c <= '9':
			kind = 2
		}
		seen[kind]++
		if last >= 0 && kind != last {
			changes++
		}
		last = kind
	}
	if padded {
		return seen[0] > 0 && seen[1] > 0 && changes*4 >= len(code) && entropy(code) > 3.2
	}
	return seen[0] > 0 && seen[1] > 0 && seen[2] > 0 && seen[3]*5 <= len(code) && changes*3 >= len(code) && entropy(code) > 3.6
}

// isEncodedText reports whether base64 encodes text, which is judged in its decoded form.
func isEncodedText(code string) bool {
	code = strings.NewReplacer("-", "+", "_", "/").Replace(code)
	plain, err := base64.RawStdEncoding.DecodeString(code[:len(code)/4*4])
	if err != nil || !utf8.Valid(plain) {
		return false
	}
	for _, r := range string(plain) {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f {
			return false
		}
	}
	return true
}

// isServiceToken reports whether a word is a service's token: a prefix followed by random characters.
func isServiceToken(word string) bool {
	if len(word) < 36 || word[0] < 'a' || word[0] > 'z' { // most words are not
		return false
	}
	m := serviceToken.FindStringSubmatch(word)
	return m != nil && isRandomMix(m[1], false) && !digestPrefix.MatchString(word)
}

var serviceToken = regexp.MustCompile(`^[a-z][a-z0-9]{1,11}(?:[_-][a-z0-9]{1,8}){0,2}[_-]([A-Za-z0-9]{32,})$`)

// A name with one of these at its end is that of a public value with the shape of a key.
var identifiers = wordSet("id ids uid uuid guid sha md digest checksum hash sum commit revision rev version ref trace span traceparent request " +
	"correlation etag fingerprint thumbprint serial build layer image container parent head tree object blob tag sandbox integrity mask seed mirror h")

// A name with one of these in it is that of the public half of a key.
var publicWords = wordSet("public pub pubkey cert certs certificate certificates crt ca cabundle bundle chain")

// namesPublic reports whether a value with the shape of a key is none, by its name or that of its group, as in
// checksum/config.
func namesPublic(name string) bool {
	if group, own, ok := strings.Cut(name, "/"); ok {
		return namesPublic(group) || namesPublic(own)
	}
	parts := splitName(name)
	if len(parts) == 0 {
		return true // of nothing but digits
	}
	last := parts[len(parts)-1]
	if identifiers[last] || about[last] {
		return true
	}
	for _, p := range parts {
		if publicWords[p] {
			return true
		}
	}
	return len(parts) > 1 && keyWord(last) && isHarmless(parts, len(parts)-1)
}

// isNoSecret reports whether a match is no secret whatever its name: it is a placeholder for one, or the public half of
// a key.
func isNoSecret(value string) bool {
	value = strings.Trim(value, " \t\r\n\"'`")
	return isPlaceholder(value) || value == "-----BEGIN" || isPublicPEM(value) || publicSSH.MatchString(value)
}

var publicSSH = regexp.MustCompile(`^(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp[0-9]+|sk-(?:ssh|ecdsa)-[a-z0-9@.-]+)(?: AAAA[A-Za-z0-9+/]+={0,2}(?: [\w.@-]+)?)?$`)

// placeholder matches text that a person is to replace, or has replaced: words in angle brackets, template variables,
// words that announce it. None contains a digit, since a password may begin and end like any of them.
var placeholder = regexp.MustCompile(`^(?:<[A-Za-z][A-Za-z _./-]*>|\{\{[-\s]*[A-Za-z_.$"| ]+[-\s]*\}\}|\$\{\{ *[A-Za-z_.]+ *\}\}|%[A-Z_]+%|\$[A-Z][A-Z_]+|__[A-Z][A-Z_]*__|` +
	`(?i:your|my|insert|paste|enter)(?:[-_ ][A-Za-z]+)+|(?i:redacted)|[*\[(<{]{1,3}(?i:redacted|masked|hidden|filtered|omitted)[*\])>}]{1,3})$`)

// spacedPlaceholder matches one that may contain blanks, at the start of a value.
var spacedPlaceholder = regexp.MustCompile(`^(?:<[A-Za-z][A-Za-z _./-]*>|\$?\{\{[^{}\n]{1,64}\}\})`)

// htmlEscapes undoes the escapes that JSON encoders, such as kubectl's, write around a placeholder.
var htmlEscapes = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// isPlaceholder reports whether a value is a placeholder for a secret.
func isPlaceholder(value string) bool {
	if isMask(value) {
		return true
	}
	value = htmlEscapes.Replace(value)
	return len(value) <= 80 && placeholder.MatchString(value)
}

// isMask reports whether a value is one repeated character, as forms show a password.
func isMask(value string) bool {
	if value == "…" {
		return true
	}
	first, size := utf8.DecodeRuneInString(value)
	if !strings.ContainsRune("*•●xX.…#-_", first) {
		return false
	}
	n := 0
	for _, r := range value {
		if r != first {
			return false
		}
		n++
	}
	return n >= 3 && len(value) == n*size
}

// publicLabels are the labels of public PEM blocks; others are redacted.
var publicLabels = func() map[string]bool {
	labels := map[string]bool{}
	for _, label := range []string{
		"CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE", "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST", "ATTRIBUTE CERTIFICATE",
		"X509 CRL", "PUBLIC KEY", "RSA PUBLIC KEY", "DSA PUBLIC KEY", "EC PUBLIC KEY", "SSH2 PUBLIC KEY", "PGP PUBLIC KEY BLOCK",
		"DH PARAMETERS", "EC PARAMETERS", "DSA PARAMETERS", "PKCS7", "CMS", "PGP SIGNATURE", "SSH SIGNATURE",
	} {
		labels[label] = true
	}
	return labels
}()

// pemLabel returns the label of the line after "-----BEGIN " or "-----END ".
func pemLabel(s string) string {
	label, _, ok := strings.Cut(s[:min(len(s), maxLabel)], "-----")
	if !ok {
		return ""
	}
	return label
}

// isPublicPEM reports whether a value consists of public PEM blocks only, with line feeds plain or escaped, or in a
// block of YAML.
func isPublicPEM(value string) bool {
	value = strings.TrimLeft(strings.TrimRight(value, " \t\r\n\\"), "|>-+ \t\r\n")
	if len(value) > 0 && !strings.HasPrefix(value, "BEGIN ") { // the dashes were cut off with the sign of the YAML block
		return false
	}
	for value != "" {
		label := pemLabel(strings.TrimPrefix(value, "BEGIN "))
		body, rest, whole := strings.Cut(value, pemEnd+label+"-----")
		if label == "" || !publicLabels[label] || !whole || !isPEMBody(strings.TrimPrefix(body, "BEGIN "+label+"-----")) {
			return false
		}
		rest = strings.TrimLeft(rest, " \t\r\n")
		for strings.HasPrefix(rest, `\n`) || strings.HasPrefix(rest, `\r`) {
			rest = strings.TrimLeft(rest[2:], " \t\r\n")
		}
		if rest == "" {
			return true
		}
		var more bool
		if value, more = strings.CutPrefix(rest, "-----"); !more || !strings.HasPrefix(value, "BEGIN ") {
			return false
		}
	}
	return false
}

// isPEMBody reports whether text is the body of one block.
func isPEMBody(text string) bool {
	for i := range len(text) {
		if !inPEM(text[i]) {
			return false
		}
	}
	return true
}
