package redact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A word with one of these suffixes names a secret. By last byte.
var endings = byLastByte([]string{
	"password", "passwd", "passphrase", "passcode", "secret", "token", "credential", "credentials",
	"pass", "pw", "pwd", "masterauth", "apikey", "accesskey", "secretkey", "privatekey", "sshkey", "authkey", "masterkey", "signingkey", "encryptionkey", "accountkey", "privkey", "passkey",
	// In other languages, with and without accents.
	"contraseña", "contrasena", "contrasenya", "motdepasse", "mdp", "пароль", "пароля", "секрет", "токен", "密码", "密碼", "口令", "密钥", "令牌", "パスワード", "暗証番号",
	"秘密鍵", "비밀번호", "비번", "암호", "토큰", "senha", "passwort", "kennwort", "geheimnis", "पासवर्ड", "कूटशब्द", "hasło", "haslo", "wachtwoord", "parola", "şifre", "sifre", "şifresi",
	"lösenord", "losenord", "adgangskode", "heslo", "jelszó", "jelszo", "salasana", "passord", "পাসওয়ার্ড", "گذرواژه", "پاسورڈ", "סיסמה", "κωδικός", "รหัสผ่าน", "katasandi", "matkhau", "khẩu",
	"lozinka", "zaporka", "geslo", "пароль", "мдп", "лозинка", "парола", "contrasinal", "contrasenia",
})

func byLastByte(words []string) (sets [256][]string) {
	for _, w := range words {
		sets[w[len(w)-1]] = append(sets[w[len(w)-1]], w)
	}
	return sets
}

func endsTelling(word string) bool {
	for _, e := range endings[word[len(word)-1]] {
		if strings.HasSuffix(word, e) {
			return true
		}
	}
	return false
}

// Whole words that name a secret.
var exact = wordSet("cred creds psk jwt cookie cookies bearer passwords passphrases clave sandi")

// Whole words that do so in an environment, where they never refer to the thing itself.
var inEnvironment = wordSet("secrets tokens auth authorization apikeys keys key pin salt sig signature")

var pluralWords = wordSet("passwords passphrases credentials tokens apikeys")

// Words with one of those suffixes that name no secret.
var otherwise = wordSet("bypass compass encompass surpass trespass overpass underpass oldpwd")

// A key with one of these before it opens no door.
var harmlessKeys = wordSet("topology label match primary foreign partition public sort cache config map row object group index " +
	"routing idempotency dedup message shard hash lookup registry json yaml field annotation env license host pub")

// A name with one of these at its end refers to a property of the secret.
var about = wordSet("name names namespace ref refs reference file files filename path paths dir directory url uri host port endpoint " +
	"seconds minutes hours ttl expiry expires expired expiration count type types length size version audience issuer policy enabled disabled " +
	"required optional rotation class mode limit limits max min provider store algorithm alg user username label labels " +
	"annotation annotations selector prefix suffix format encoding usage status state reason error errors kind group resource " +
	"source process encoder hasher strength hint resources request requests review volume mount mounts bucket field fields header")

func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

// isTellingName reports whether a value under that name is a secret in any context, judged by its last word.
func isTellingName(name string) bool {
	parts := splitName(name)
	if n := len(parts); n > 1 && parts[n-1] == "value" { // token.value
		parts = parts[:n-1]
	}
	return len(parts) > 0 && !slices.Contains(parts, "existing") && wordTells(parts, len(parts)-1)
}

// tellingVariable does the same for the name of a variable or flag, judged by any of its words.
func tellingVariable(name string) bool {
	parts := splitName(name)
	if len(parts) == 0 || about[parts[len(parts)-1]] {
		return false
	}
	if last := parts[len(parts)-1]; inEnvironment[last] && (last != "tokens" || !slices.ContainsFunc(parts, func(p string) bool { return counts[p] })) && (!keyWord(last) || !isHarmless(parts, len(parts)-1)) {
		return true
	}
	if slices.Contains(parts, "existing") {
		return false
	}
	for i := range parts {
		if wordTells(parts, i) {
			return true
		}
	}
	return false
}

// A name of tokens with one of these in it is that of their number.
var counts = wordSet("max min num number total count prompt completion input output used new per cached reasoning budget context")

// A Secret with one of these before it is the object: its name is no secret.
var ofObject = wordSet("pull credentials existing")

func wordTells(parts []string, i int) bool {
	w := parts[i]
	if otherwise[w] {
		return false
	}
	if w == "secret" && i > 0 && ofObject[parts[i-1]] {
		return false
	}
	if w == "data" && i > 0 && keyWord(parts[i-1]) && !isHarmless(parts, i-1) {
		return true // such as client-key-data in a kubeconfig
	}
	if exact[w] || endsTelling(w) {
		return true
	}
	return keyWord(w) && i > 0 && !isHarmless(parts, i)
}

// isPluralName reports whether a name is that of several secrets, so that its value is a map or list of them.
func isPluralName(name string) bool {
	parts := splitName(name)
	return len(parts) > 0 && pluralWords[parts[len(parts)-1]]
}

func keyWord(w string) bool { return w == "key" || w == "keys" }

func isHarmless(parts []string, i int) bool { return i > 0 && harmlessKeys[parts[i-1]] }

// splitName splits a name at changes of case and at all non-letters. Digits separate: password2 is one.
func splitName(name string) []string {
	var parts []string
	runes := []rune(name)
	start := 0
	flush := func(end int) {
		if end > start {
			parts = append(parts, strings.ToLower(string(runes[start:end])))
		}
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsMark(r):
			flush(i)
			start = i + 1
		case i > start && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			flush(i) // fooBar, and FOOBar as foo bar
			start = i
		}
	}
	flush(len(runes))
	return parts
}

// elsewhere matches the text in a description for a value that is unset or set from another object.
var elsewhere = regexp.MustCompile(`^<(?:set to the (?:key|field) [^<>]*|unset|none|nil|unknown)>` +
	`(?:[ \t]+Optional:[ \t]+(?:true|false))?$`)

// sizeExpr matches the text in a description for a value of a Secret.
var sizeExpr = regexp.MustCompile(`^[0-9]+ bytes$`)

// reference matches a variable without a default value.
var reference = regexp.MustCompile(`^\$\{[^{}:=?+]*(?::?[-?+=])?\}$`)

// isPlainValue reports whether a value is no secret under any name.
func isPlainValue(value string) bool {
	switch word := strings.ToLower(value); strings.TrimRight(word, ")]},;") {
	case "", "true", "false", "yes", "no", "on", "off", "null", "nil", "none", "~", "{", "[":
		return true
	}
	switch {
	case elsewhere.MatchString(value), sizeExpr.MatchString(value):
		return true
	case strings.HasPrefix(value, "$(") && strings.IndexByte(value, ')') == len(value)-1, reference.MatchString(value):
		return true // a reference to another variable, which is judged by its own name
	}
	return marked.MatchString(value) || isNoSecret(value)
}
