package redact

import (
	"regexp"
	"strings"
)

// argument matches the text after a flag: a value after a blank or an equals sign, or the next entry of a list in JSON
// or YAML.
const argument = `(?:(?:[ \t]+|=)(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'|;&<>]+))|\\?["'],\s*\\?["']([^"'\n\\]+)|["']?[ \t]*\r?\n[ \t]*-[ \t]+["']?([^\s"']+))`

// between matches the text between the name of a program and a flag.
const between = `(?:[^\n|;&]|\n[ \t]*-|\\\n)*?`

// newClient returns a rule for programs that take a secret after a flag.
func newClient(names, flag string) *rule {
	return newRule("client", names, `(?i:\b(?:`+names+`)\b)(?:\.exe)?`+between+`[\s"'](?:`+flag+`)`+argument, isArgument).near(8, 600)
}

// newGlued returns a rule for programs that take a secret in the same word as its flag.
func newGlued(names, flag string) *rule {
	return newRule("client-glued", names, `(?i:\b(?:`+names+`)\b)(?:\.exe)?[^\n]*`, isArgument).
		inside(`[\s"'](?:` + flag + `)(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'=,-][^\s"']*))`)
}

// clientRules find secrets in command lines of programs whose flags have no telling names.
func clientRules() []*rule {
	const quoted = `(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'|;&<>]+))`
	return []*rule{
		newGlued("mysql|mysqldump|mysqladmin|mysqlimport|mysqlsh|mysqlcheck|mysqlbinlog|mariadb|mariadb-dump|mariadb-admin|sshpass|7z|7za|mytop", "-p"),
		newClient("sshpass", "-p"),
		newClient("docker login|podman login|nerdctl login|helm registry login|crane auth login|oras login|buildah login|regctl registry login|oc login|twine upload|cf login|az login|az acr login|skopeo login|helm repo add", "-p|--password").exceptPorts(),
		newClient("redis-cli|valkey-cli|keydb-cli", "-a|--pass"),
		newClient("mongo|mongosh|mongodump|mongorestore|mongoexport|mongoimport|mongostat|cqlsh|sqoop|rdesktop|beeline|mutt|impala-shell", "-p").exceptPorts(),
		newClient("nodetool", "-pw|--password"),
		newClient("ldapsearch|ldapmodify|ldapadd|ldapdelete|ldapwhoami|ldapcompare|ldappasswd", "-w"),
		newClient("ldappasswd", "-s|-a"),
		newClient("sqlcmd|bcp|mosquitto_pub|mosquitto_sub|ipmitool|osql|isql|zip|unzip|zipcloak", "-P"),
		newClient("plink|pscp|psftp|putty", "-pw"),
		newClient("snmpget|snmpwalk|snmpset|snmpbulkwalk|snmptrap", "-A|-X|-c"),
		newClient("skopeo|buildah|podman", "--creds|--src-creds|--dest-creds|--screds|--dcreds").colonPassword(),
		newRule("httpie", "http -|https -|xh -|httpie", `\b(?:https?|httpie|xh)[ \t](?:[^\n]*?[ \t])?(?:-a|--auth)(?:=|[ \t]+)["']?[^\s:"'=/-][^\s:"'=/]*:([^\s"'/][^\s"']*)`, isArgument),
		newClient("smbclient|rpcclient|smbget|net ads|winexe", "-U|--user").percentPassword(),
		newClient("openssl", "-k|-K|-passin|-passout|-pass|-password"),
		newClient("doctl|flyctl|vercel|netlify|surge|railway|snyk|sentry-cli|argocd|pulumi|ngrok", "-t|--token|--auth-token|--access-token|--authtoken"),
		newClient("cloudflared", "--token|--credentials-contents"),
		newClient("keytool|jarsigner", "-storepass|-keypass|-srcstorepass|-deststorepass|-new"),
		newClient("java|javaws|mvn|gradle|ant", `-D[\w.-]*(?i:password|passwd|secret|token)`),
		newRule("xfreerdp", "xfreerdp|mstsc|wfreerdp", `(?i)freerdp[^\n]*?[\s"']/p:`+quoted, isArgument),
		newRule("vnc", "x11vnc", `x11vnc[^\n]*?-passwd[ \t]+`+quoted, isArgument),
		newRule("aws-configure", "configure set", `\bconfigure[ \t]+set[ \t]+[\w.-]*(?i:secret_access_key|session_token|aws_secret_key|secret-key)[ \t]+`+quoted, isArgument),
		newRule("pip-npm-config", "config set", `\bconfig[ \t]+set[ \t]+(?:--\S+[ \t]+)*\S*(?i:token|auth|password|secret|apikey|api_key|api-key)\b[ \t=]+`+quoted, isArgument),
		newRule("composer", "config", `\bconfig[^\n]*http-basic\.\S+[ \t]+\S+[ \t]+`+quoted, isArgument),
		newRule("kubectl-secret", "create secret|apply secret", `\b(?:create|apply)[ \t]+secrets?[ \t][^\n]*`, isArgument).
			inside(`--from-literal(?:=|[ \t]+)(?:"[^"=\n]+=([^"\n]+)"|'[^'=\n]+=([^'\n]+)'|[^\s"'=]+=` + quoted + `)`),
		newRule("kubectl-credentials", "--docker-password|set-credentials", `--(?:docker-password|password|token)(?:=|[ \t]+)`+quoted, isArgument),
		newRule("vault", "vault", `\bvault[ \t]+(?:login|unseal|operator unseal|unwrap|token (?:revoke|lookup|renew))[ \t]+(?:-\S+[ \t]+)*([\w.+/=-]{16,})`, isArgument),
		newRule("vault-put", "vault", `\bvault[ \t]+(?:kv (?:put|patch)|write)[ \t][^\n]*`, isArgument).inside(`[ \t][\w.-]+=` + quoted),
		newRule("htpasswd-b", "htpasswd", `\bhtpasswd[ \t]+(?:-\w+[ \t]+)*-\w*b\w*[ \t]+(?:-\w+[ \t]+)*(?:[^\s-]\S*[ \t]+){1,2}`+quoted+`[ \t]*$`, isArgument),
		newRule("chpasswd", "chpasswd", `[^\n]*chpasswd[^\n]*`, isArgument).inside(`["' ]["']?[\w.-]+:([^\s"'|;]+)["']?`),
		newRule("sudo-s", "sudo", `(?:echo|printf|print)[ \t]+(?:-\w+[ \t]+)*`+quoted+`[ \t]*\|[ \t]*(?:sudo)\b[^\n|]*?[ \t](?:-S|--stdin)\b`, isArgument),
		newRule("stdin", "stdin|cryptsetup|vncpasswd|passwd", `(?:echo|printf|print)[ \t]+(?:-\w+[ \t]+)*`+quoted+`[ \t]*\|[^\n]*(?:--password-stdin|--with-token|--stdin\b|cryptsetup|vncpasswd|\bpasswd\b)`, isArgument),
		newRule("here-string", "<<<", `(?:--password-stdin|--with-token|--stdin|cryptsetup|chpasswd|passwd|vault|gpg|sudo)[^\n]*<<<[ \t]*(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'|;&<>]+))`, isArgument),
		newRule("rabbitmq", "rabbitmqctl|rabbitmqadmin", `\brabbitmqctl[ \t]+(?:-\S+[ \t]+)*(?:add_user|change_password|authenticate_user)[ \t]+\S+[ \t]+`+quoted, isArgument),
		newRule("minio", "mc alias|mc config|mc admin", `\bmc[ \t]+(?:alias[ \t]+set|config[ \t]+host[ \t]+add|admin[ \t]+user[ \t]+add)[ \t][^\n]*?[ \t]+\S+[ \t]+`+quoted+`[ \t]*(?:$|[\n;|&]|--)`, isArgument),
		newRule("sqlplus", "sqlplus|sqlldr|expdp|impdp|rman|sqlcl", `(?i)\b(?:sqlplus|sqlldr|expdp|impdp|sqlcl)[ \t]+(?:-\S+[ \t]+)*["']?[\w.$#-]+/(?:"([^"\n]+)"|([^\s"'@]+))(?:@|["'\s]|$)`, isArgument),
		newRule("net-use", "net use|net user", `(?i)\bnet[ \t]+use[ \t][^\n]*?/user:\S+[ \t]+([^\s/"'][^\s"']*)`, isArgument),
		newRule("net-user", "net user", `(?i)\bnet[ \t]+user[ \t]+\S+[ \t]+([^\s/"'][^\s"']*)`, isArgument),
		newRule("wifi", "nmcli|wpa_passphrase", `\bnmcli[^\n]*[ \t]password[ \t]+`+quoted+`|\bwpa_passphrase[ \t]+\S+[ \t]+([^\s"']+)`, isArgument),
		newRule("openssl-pass", "pass:", `(?:^|[\s"'=])pass:([^\s"'<>]+)`, func(m, v string) bool {
			return isArgument(m, v) && !strings.HasPrefix(v, "/") && !resultExpr.MatchString(v)
		}),
		newRule("openssl-passwd", "openssl passwd", `\bopenssl[ \t]+passwd[ \t]+(?:-(?:salt[ \t]+\S+|\w+)[ \t]+)*([^\s"'|;&<>-][^\s"'|;&<>]*)`, isArgument),
		newRule("expect", "send", `\bsend[ \t]+(?:--[ \t]+)?"([^"\n\\]{6,})\\[rn]"`, func(_, v string) bool { return isMixedWord(v) && !strings.Contains(v, " ") }),
		newRule("basic-user", "-u|--user|--proxy-user|curl -", userFlag+`(?:=|[ \t]*|["'],[ \t]*["'])(?:"[^\s:"'/]+:([^"\n]+)"|'[^\s:"'/]+:([^'\n]+)'|[^\s:"'/=-][^\s:"'/]*:([^\s"'/][^\s"']*))`, isAccount),
		newRule("sql-set-password", "set password", `(?i)\bset[ \t]+password(?:[ \t]+for[ \t]+\S+)?[ \t]*(?:=|to)?[ \t]*'([^'\n]+)'`, isArgument),
		newRule("redis-auth", "auth", `(?m)(?:^|[>"'\n] *|config set requirepass |redis-cli )AUTH[ \t]+(?:\S+[ \t]+)?([^\s"']{6,})[ \t]*(?:$|["'\r])`, func(_, v string) bool { return isMixedWord(v) }),
		newRule("redis-acl", "acl setuser|user ", `(?i)(?:\bacl[ \t]+setuser[ \t]|^user[ \t])[^\n]*`, nil).inside(`[ \t](?:>|#)([^\s"']{4,})`),
		newRule("redis-migrate", "config set", `(?i)\bconfig[ \t]+set[ \t]+(?:requirepass|masterauth|tls-key-file-pass)[ \t]+`+quoted, isArgument),
	}
}

// isArgument reports whether the text after a flag is a secret, and not a reference to one, another flag or prose.
func isArgument(_, value string) bool {
	if isPlainValue(value) || strings.HasPrefix(value, "-") || strings.HasPrefix(value, "$") || strings.HasPrefix(value, "<") || strings.HasPrefix(value, "@") || strings.HasPrefix(value, "[redacted") || strings.HasPrefix(value, "`") || strings.HasPrefix(value, "{{") || argumentSource.MatchString(value) {
		return false
	}
	return !proseWords[strings.ToLower(strings.TrimRight(value, ".,;:!?)"))]
}

// portsExpr matches the ports that docker and similar programs publish with -p.
var portsExpr = regexp.MustCompile(`^[\d.:\[\]-]*\d{1,5}(?::\d{1,5})?(?:/(?:tcp|udp))?$`)

// exceptPorts excludes ports, which other programs take with the same flag.
func (r *rule) exceptPorts() *rule {
	accept := r.accept
	r.accept = func(match, value string) bool { return accept(match, value) && !portsExpr.MatchString(value) }
	return r
}

// argumentSource matches an argument that gives the source of the secret.
var argumentSource = regexp.MustCompile(`^(?:env|file|fd|stdin):`)

// Words after a flag in a sentence about it.
var proseWords = wordSet("is are was and or to for the a an flag option with without on in of if it its takes means has as at by when which that this file stdin from env prompt pass:... insecure deprecated may can must should will be not")

// isAccount excludes a user with a group: both are numbers, or the same word.
func isAccount(match, value string) bool {
	user := strings.TrimSuffix(strings.TrimRight(match, `"'`), value)
	user = strings.TrimSuffix(user, ":")
	if i := strings.LastIndexAny(user, " \t=\"'"); i >= 0 {
		user = user[i+1:]
	}
	return user != value && strings.Trim(value, "0123456789") != "" && isArgument("", value)
}

// colonPassword limits the secret to the part after a colon.
func (r *rule) colonPassword() *rule {
	return r.inside(`[\s"'=][^\s:"'=/-][^\s:"'=/]*:([^\s"'/][^\s"']*)`)
}

// percentPassword limits the secret to the part after a percent sign.
func (r *rule) percentPassword() *rule { return r.inside(`[\s"'=][\w.\\/-]+%([^\s"']+)`) }
