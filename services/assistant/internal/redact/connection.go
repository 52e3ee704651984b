package redact

// connectionRules find passwords in data source names and in the files where clients keep them.
func connectionRules() []*rule {
	return []*rule{
		newRule("dsn-go", "@tcp(|@tcp6(|@unix(|@udp(|@cloudsql(|@cloudsql-", "[\\w.%+-]*:([^\\s\"'`]+)@(?:tcp6?|unix|udp|cloudsql[a-z-]*)\\(", nil),
		newRule("dsn-local", "@/", "(?:^|[\\s\"'`=])[\\w.-]+:([^\\s\"'`/:]+)@/[\\w-]*", nil),
		newRule("dsn-oracle", "jdbc:oracle", `(?i)jdbc:oracle:[a-z]+:[^/\s"'@]+/(?:"([^"]+)"|([^\s"']+))@`, nil),
		newRule("dsn-easy", "@//", `(?:^|[\s"'=])[\w.$#-]+/(?:"([^"\n]+)"|([^\s"'/@]+))@//[\w.-]+`, nil),
		newRule("dsn-braces", "pwd|password|passwort", `(?i)\b(?:pwd|password)[ \t]*=[ \t]*\{((?:[^}\n]|\}\})+)\}`, func(_, v string) bool { return !isPlainValue(v) }),
		newRule("account-key", "accountkey|accesskey|sharedaccess", `(?i)\b(?:AccountKey|SharedAccessKey|SharedAccessSignature|AccessKey)=([^\s"';]+)`, nil),
		newRule("pgpass", ":543|:*:|:6432:", `(?m)(?:^|[\s"'|])(?:[\w.*/-]+|\[[0-9a-f:]+\]):(?:[0-9]{2,5}|\*):[^:\s"']+:[^:\s"']+:((?:\\:|[^\s:"'])+)(?:$|[\s"'])`, isPgpass),
		newRule("netrc", "machine|default", `(?i)\b(?:machine\s+\S+|default\s+login\s+\S+)\s+(?:(?:login|account)\s+\S+\s+)*password\s+("[^"\n]+"|\S+)`, notPlain).near(16, 400),
		newRule("netrc-token", "login", `(?i)\blogin[ \t]+\S+[ \t\r\n]+password[ \t]+([^\s"']+)`, notPlain).near(16, 400),
		newRule("url-token", "api.telegram.org/bot|/bot", `/bot([0-9]{8,10}:[A-Za-z0-9_-]{30,})`, nil),
	}
}

// isPgpass excludes colon-separated lines whose last field is a number, such as positions in a file.
func isPgpass(_, value string) bool { return !isPlainValue(value) && value != "*" }

func notPlain(_, value string) bool { return !isPlainValue(value) }
