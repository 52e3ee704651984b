package redact

import (
	"regexp"
	"strings"
)

// The parts of the expressions below.
const (
	blank       = `[ \t]+`
	bareWord    = `[^\s"']+`
	settingName = `(?:requirepass|masterauth|bindpw|rootpw)`
	sqlName     = `(?:identified` + blank + `(?:with` + blank + bareWord + blank + `)?(?:by` + blank + `password|by|as)|password|passwd)`
	userFlag    = `(?:^|[\s"'])(?:-[sSkLvifgj]*u|--user|--proxy-user|-U)`
	proseName   = `(?:password|passwd|passphrase|passcode|token|api[ -]?key|pwd|secret key)`
	verb        = `(?:is now|(?:is|was)[ \t]*:|is|was|to be|to|becomes|=>|->)`
	owner       = `(?:` + blank + `(?:for|of|on)` + blank + bareWord + `)?`
	// Names of two words, and names that are not set off by blanks in a sentence.
	foreignName = `(?:mots?[ _-]?de[ _-]?passe|clé secrète|clé d'api|clave secreta|clave de api|palabra clave|código de acesso|chave de api|chave secreta|` +
		`секретный ключ|ключ api|parola d'ordine|chiave segreta|kata sandi|mật khẩu|geheimer schlüssel|klucz api|gizli anahtar|` +
		`كلمة[ _]?(?:المرور|السر|سر|مرور)|رمز المرور|密码|密碼|口令|密钥|令牌|パスワード|暗証番号|秘密鍵|비밀번호|비번|암호|토큰|` +
		`пароль|contraseña|senha|passwort|kennwort|पासवर्ड|कूटशब्द|पासवर्ड|hasło|haslo|wachtwoord|şifre|lösenord|heslo|jelszó|salasana|পাসওয়ার্ড|گذرواژه|پاس ورڈ|סיסמה|κωδικός|รหัสผ่าน)`
	foreignVerb = `(?:(?:[ \t]\pL+){0,3}[ \t]*[:=：＝]|=>|é|è|est|is|es|ist|lautet|là|adalah|to|jest|это|هي|هو|是|为|為|は|が|은|는|이|है)`
)

// phraseRules find the text after a name without a sign between them: settings of servers, SQL, tags, prose.
func phraseRules() []*rule {
	return []*rule{
		newRule("setting", "requirepass|masterauth|bindpw|rootpw", `(?i)\b`+settingName+blank+`(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"']+))`, notPlain),
		newRule("sql", "identified|password|passwd", `(?i)\b`+sqlName+blank+`(?:'([^'\n]+)'|"([^"\n]+)")`, notPlain),
		newRule("element", "</", `<[A-Za-z][\w.:-]*(?:[ \t\r\n][^<>]*)?>([^<>]+)</`, elementTells).near(2048, 8),
		newRule("cdata", "]]>", `<[A-Za-z][\w.:-]*(?:[ \t][^<>]*)?>\s*<!\[CDATA\[((?:[^\]]|\][^\]])+)\]\]>`, elementTells).near(1024, 64),
		newRule("property-list", "<key>", `<key>[^<]*</key>\s*<(?:string|data)>([^<]+)</`, func(m, v string) bool { return listTells(m, "<key>", v) }).near(64, 4096),
		newRule("property-value", "<name>|<key>", `<(?:name|key)>[^<]*</(?:name|key)>\s*<value>([^<]+)</`, func(m, v string) bool {
			return listTells(m, "<name>", v) || listTells(m, "<key>", v)
		}).near(64, 4096),
		newRule("value-element", "<value>", `<\w[^<>]*>\s*<value>([^<>]+)</value>`, elementTells).near(1024, 4096),
		newRule("quoted-setting", "secret", `(?m)(?:^|[ \t;{])secret[ \t]+"([^"\n]{8,})"[ \t]*;`, nil),
		newRule("call", "(\"|('|( \"|( '", `\([ \t]*["'][\w.-]{2,64}["'][ \t]*,[ \t]*(?:"([^"\n]+)"|'([^'\n]+)')`, firstQuotedTells),
		newRule("setter", "password(|passwd(|secret(|token(|key(", `(?i)\b(?:set|with)_?\w*(?:password|passwd|secret|token|api_?key)\([ \t]*(?:"([^"\n]+)"|'([^'\n]+)')`, notPlain),
		newRule("typed", ": string|: str|:string|:str", `\b\w+\??:[ \t]*(?:string|str|String|Optional\[str\])[ \t]*=[ \t]*(?:"([^"\n]+)"|'([^'\n]+)')`, firstWordTells),
		newRule("env-line", "setenv|env |fastcgi_param", `(?m)^[ \t]*(?i:setenv|env|fastcgi_param|passenger_env_var)[ \t]+\w+[ \t]+(?:"([^"\n]+)"|([^\s"'=;]+))`, secondWordTells),
		newRule("property", "password |secret |token |passphrase ", `(?m)^[\w-]+(?:\.[\w-]+)+[ \t]+([^\s"'=:]+)[ \t]*$`, firstWordTells),
		newRule("prose", "pass|token|key|pwd", `(?i)\b`+proseName+owner+blank+verb+blank+"[\"'`]?([^\\s\"'<>`]*[^\\s\"'<>`.,;:!?)])", isSaid).near(16, 400),
		newRule("foreign", foreignKeywords, `(?i)`+foreignName+`[»"'”’]?`+`\s*`+foreignVerb+`\s*(?:"([^"\n]+)"|'([^'\n]+)'|«([^»\n]+)»|“([^”\n]+)”|「([^」\n]+)」|([!-~]{3,}))`, isSaidElsewhere).near(8, 400),
	}
}

// Parts of the foreign names without their first letter, if its capital has more than one byte.
const foreignKeywords = "de passe|de_passe|de-passe|depasse|secrète|d'api|secreta|de api|clave|de acesso|екретный|ключ|люч api|d'ordine|segreta|kata sandi|khẩu|schlüssel|klucz|anahtar|" +
	"كلمة|رمز|密码|密碼|口令|密钥|令牌|パスワード|暗証番号|秘密鍵|비밀번호|비번|암호|토큰|ароль|contrase|senha|passwort|kennwort|पासवर्ड|कूटशब्द|पासवर्ड|hasł|hasŁ|haslo|wachtwoord|şifre|Şifre|ŞİFRE|senord|heslo|jelsz|salasana|পাস|گذرواژه|پاس|סיסמה|ωδικός|รหัสผ่าน"

var attributeExpr = regexp.MustCompile(`[ \t\r\n](?:name|key|id|property|Name|Key|Id|ID)[ \t]*=[ \t]*["']([^"'<>]{1,128})["']`)

// elementTells reports whether the name of an element, or a name among its attributes, marks its value as a secret.
func elementTells(match, value string) bool {
	if isPlainValue(strings.TrimSpace(value)) {
		return false
	}
	tag := match[1:strings.IndexByte(match, '>')]
	name, attributes := tag, ""
	if i := strings.IndexAny(tag, " \t\r\n"); i >= 0 {
		name, attributes = tag[:i], tag[i:]
	}
	if isTellingName(name) {
		return true
	}
	for _, m := range attributeExpr.FindAllStringSubmatch(attributes, -1) {
		if tellingVariable(m[1]) {
			return true
		}
	}
	return false
}

var nameExpr = regexp.MustCompile(`[\w.-]+`)

func firstQuotedTells(match, value string) bool {
	return tellingVariable(nameExpr.FindString(match)) && !isPlainValue(value)
}

func firstWordTells(match, value string) bool {
	return isTellingName(nameExpr.FindString(match)) && !isPlainValue(value)
}

func secondWordTells(match, value string) bool {
	words := strings.Fields(match)
	return len(words) > 1 && tellingVariable(words[1]) && !isPlainValue(value)
}

func listTells(match, open, value string) bool {
	_, rest, ok := strings.Cut(match, open)
	name, _, _ := strings.Cut(rest, "<")
	return ok && tellingVariable(name) && !isPlainValue(strings.TrimSpace(value))
}

// isSaid reports whether the text that prose calls a password is one. Words such as "wrong" and "required" are not.
func isSaid(_, value string) bool {
	value = strings.TrimRight(value, ".,;:!?)")
	return len(value) >= 6 && !strings.HasPrefix(value, "[redacted") && !strings.ContainsAny(value, "/(") && isMixedWord(value)
}

func isSaidElsewhere(match, value string) bool {
	return !isPlainValue(value) && (strings.ContainsAny(match, ":=：＝") || isSaid("", value))
}

// isMixedWord reports whether a word contains more than an ordinary one: digits, signs, inner capitals.
func isMixedWord(value string) bool {
	return strings.ContainsAny(value, "0123456789!@#$%^&*_=+~") || value != "" && strings.ToLower(value[1:]) != value[1:] && strings.ToUpper(value) != value
}
