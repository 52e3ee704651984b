package logtext

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// klogExpr matches the head of a line of the Kubernetes components: severity, month and day.
var klogExpr = regexp.MustCompile(`^(?:\S+Z )?([EFWI])(?:0[1-9]|1[0-2])[0-3]\d \d\d:\d\d:\d\d`)

// calmExprs match phrases with a zero count of errors, an empty error field, or errors in general. The rest of the line
// may still report a problem. A number is a count only at the start of a word: "worker-0 errors" counts nothing.
var calmExprs = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(?:^|[\s,;(])(?:0|no|without) (?:any )?(?:errors?|failures?|warnings?|problems?)(?:\s*(?:[,;.)\]"]|$)|\s(?:were|was|found|detected|so)\b)`),
	regexp.MustCompile(`(?i)(?:^|[\s,;(])(?:0|no|without) (?:errors|failures|warnings)\b`),
	regexp.MustCompile(`(?i)(?:^|[\s,;(])(?:0|zero) (?:timeouts?|timed out|failed|rejected|dropped|refused|exceptions?|retries|crashe?[sd]|lost)\b`),
	regexp.MustCompile(`(?i)\b(?:` + wordlist.AnyOf("errors", "failed", "failures", "warnings", "dropped", "rejected", "denied", "expired", "refused", "timeouts", "exceptions", "corrupted", "unreachable", "exceeded", "lost") +
		`(?:_total|_count)?"?[=:] ?|(?:error|err)"?[=:])0(?:\.0*)?(?:[\s,;)}\]"]|$)`),
	regexp.MustCompile(`(?i)\b(?:\w+[_-])?errors?[_-](?:rate|ratio|count|threshold|limit|level)s?\b`), // a measure or a setting
	regexp.MustCompile(`(?i)\b(?:errors?|err|exception|failures?)"?[=:] ?(?:null|nil|none|<nil>|false|""|''|\[\]|\{\})(?:[\s,;)}\]]|$)`),
	regexp.MustCompile(`(?i)\baborted connection \d+ to db: 'unconnected' user: 'unauthenticated'.*`), // a probe of the port alone
	regexp.MustCompile(`(?i)\berrors?[ _-]?(?:pages?|handlers?|handling|reporting|reporter|tracking|budgets?|templates?|middleware|boundar(?:y|ies))\b`),
}

// Levels declared in lines.
type level int

const (
	unleveled level = iota
	debugLevel
	infoLevel
	warnLevel
	errorLevel
	fatalLevel
)

var levelNames = map[string]level{
	"trace": debugLevel, "debug": debugLevel, "dbg": debugLevel, "fine": debugLevel, "d": debugLevel,
	"info": infoLevel, "inf": infoLevel, "information": infoLevel, "notice": infoLevel, "note": infoLevel, "log": infoLevel, "i": infoLevel,
	"warn": warnLevel, "warning": warnLevel, "wrn": warnLevel, "w": warnLevel,
	"error": errorLevel, "err": errorLevel, "severe": errorLevel, "eror": errorLevel, "e": errorLevel,
	"fatal": fatalLevel, "ftl": fatalLevel, "panic": fatalLevel, "crit": fatalLevel, "critical": fatalLevel, "alert": fatalLevel, "emerg": fatalLevel, "emergency": fatalLevel, "f": fatalLevel,
}

var levelExprs = []*regexp.Regexp{
	regexp.MustCompile(`(?i)["\s{,](?:level|lvl|severity|levelname|loglevel|log\.level|@level|@l)"?\s*[=:]\s*"?([a-z]+)`),
	regexp.MustCompile(`"s":"([DIWEF])"`),
	regexp.MustCompile(`(?i)\[(?:\w+:)?\s*(` + wordlist.AnyOf("emerg(?:ency)?", "alert", "crit(?:ical)?", "fatal", "ftl", "error", "err", "severe", "warn(?:ing)?", "wrn", "notice", "note", "info", "inf", "debug", "dbg", "trace") + `)\s*\]`),
	regexp.MustCompile(`^([EFWID]), \[`),
	regexp.MustCompile(`\b(` + wordlist.AnyOf("FATAL", "PANIC", "ERROR", "ERR", "SEVERE", "CRITICAL", "CRIT", "ALERT", "EMERG", "WARN", "WARNING", "WRN", "NOTICE", "INFO", "INF", "DEBUG", "DBG", "TRACE", "FTL", "LOG") + `)\b`),
	regexp.MustCompile(`^(?i)(fatal|panic|error|warning|info|debug)\b: `),
	keyedExpr,
}

// keyedExpr matches a JSON field whose name is a level and whose value describes the problem; calmKeyExpr matches one
// whose value denies a problem.
var (
	keyedExpr   = regexp.MustCompile(`"(warn|warning|error|err|fatal|panic)":\s*"[^"]`)
	calmKeyExpr = regexp.MustCompile(`(?i)"(warn|warning|error|err|fatal|panic)":\s*"(none|null|nil|<nil>|false|ok|no|no error|success|undefined|-|0)"`)
)

// spokenExpr matches a field with text from users, in a line of level info or debug.
var spokenExpr = regexp.MustCompile(`(?i)\b(?:text|comment|body|title|subject|content|note|review|input|prompt|caption|bio|search|q)"?\s*[=:]\s*"[^"]*"`)

// quotedExpr matches text in quotes that is no value of a field: in a line of level info or debug it is data, whatever
// it says.
var quotedExpr = regexp.MustCompile(`(^|\s)"[^"]{1,200}"`)

// fieldLevelExpr matches a level in a field, which the program chose for the message and not for its logger. redisExpr
// matches the head of a line of Redis, whose fifth field is its level.
var (
	fieldLevelExpr = regexp.MustCompile(`(?i)["\s{,](?:level|lvl|severity|levelname|loglevel|log\.level|@level|@l)"?\s*[=:]\s*"?(info|information|notice|debug|trace)\b`)
	redisExpr      = regexp.MustCompile(`^\d+:[A-Z] \d\d [A-Z][a-z]{2} \d{4} [\d:.]+ ([.*#-]) `)
	redisLevels    = map[string]level{".": debugLevel, "-": debugLevel, "*": infoLevel, "#": warnLevel}
)

// pinoLevels are the numbers that pino and bunyan write.
var pinoLevels = regexp.MustCompile(`"level":([1-6])0\b`)

// levelOf returns the level that a line declares near its start.
func levelOf(line string) level {
	if m := klogExpr.FindStringSubmatch(line); m != nil {
		return levelNames[strings.ToLower(m[1])]
	}
	if m := redisExpr.FindStringSubmatch(line); m != nil {
		return redisLevels[m[1]]
	}
	if m := pinoLevels.FindStringSubmatch(line); m != nil {
		return [...]level{debugLevel, debugLevel, infoLevel, warnLevel, errorLevel, fatalLevel}[m[1][0]-'1']
	}
	head := line
	if !strings.HasPrefix(line, "{") { // JSON may have its level anywhere
		head = line[:min(len(line), 120)]
	}
	for _, expr := range levelExprs {
		if m := expr.FindStringSubmatch(head); m != nil {
			if l, ok := levelNames[strings.ToLower(m[1])]; ok {
				return l
			}
		}
	}
	return unleveled
}

// successExpr matches a fault that is over or only possible; decoyExpr matches a request, a setting or a trait of a
// program that explains no fault. Both make a line without a fault score nothing, and reduce the score of a line with
// one.
var (
	successExpr = regexp.MustCompile(`(?i)` + wordlist.AnyOf(
		`deprecat`, `will be removed`, `experimentalwarning`, `\bretr(y|ied|ies)\b.*\b(succeeded|successful|ok)\b`, `\bsucceeded (after|on|at)\b`, `\b(recovered|reconnected|restored)\b`,
		`\bno longer (needed|used)\b`, `\bignoring (unknown|unsupported|unused)\b`,
	))
	decoyExpr = regexp.MustCompile(`(?i)` + wordlist.AnyOf(
		`using (the )?default`, `falling back to`, `favicon\.ico`, `robots\.txt`, `kube-probe`, `development server`, `/(healthz?|readyz?|livez?|metrics|ping)\b`,
		`\b(dry.?run|example|sample) mode\b`, `\bis (empty|unused)\b`,
	))
	// unrestoredExpr matches a success that is missing or yet to come.
	unrestoredExpr = regexp.MustCompile(`(?i)\b(?:not|never|be|been|can'?t|cannot|before|until|unless|if)\s+(?:(?:be|been|yet|being|fully)\s+)*(?:recovered|reconnected|restored)\b`)
)

const successPenalty, decoyPenalty = 16, 12

var (
	smtpExpr     = regexp.MustCompile(`\b[45]\d\d[ -]#?[45]\.\d{1,3}\.\d{1,3}\b`)
	errnoExpr    = regexp.MustCompile(`\bE[A-Z]{4,14}\b: |\b(?:ORA|TNS|AH|SQL|DB2)-?\d{4,6}\b|\[Errno \d+\]|\(\d+: [A-Z]`)
	longTimeExpr = regexp.MustCompile(`(?i)\b(?:duration|took|elapsed|latency|query_time)"?[:= ]+"?(?:\d{4,}(?:\.\d+)? ?ms\b|\d{2,}(?:\.\d+)? ?s\b)`)
)

// StatusOf returns the status of the HTTP response that a line reports; 0: none.
func StatusOf(line string) int {
	for i := 1; i+2 < len(line); i++ {
		if line[i] < '1' || line[i] > '5' || !isDigit(line[i+1]) || !isDigit(line[i+2]) || strings.IndexByte(` "=:`, line[i-1]) < 0 || i+3 < len(line) && isWord(line[i+3]) {
			continue
		}
		if leadsToStatus(line[max(0, i-32):i], line[i+3:]) {
			return int(line[i]-'0')*100 + int(line[i+1]-'0')*10 + int(line[i+2]-'0')
		}
	}
	return 0
}

// statusWords precede the status of an HTTP response in messages.
var statusWords = []string{"status", "status_code", "statuscode", "status code"}

// answerWords may precede a status, but also the number of an error (see otherCodes) or a count (see countedExpr).
var (
	answerWords = []string{"code", "answered", "replied", "returned", "responded", "responded with"}
	otherCodes  = []string{"exit code", "error code", "return code"}
	// countedExpr matches the noun of a number, as in "returned 500 rows"; the text after a status begins differently.
	countedExpr = regexp.MustCompile(`^ ?(?:[kKMG]i?)?(?:B|ms|s|us|ns)\b|^ (?:\w+ )?(?:rows?|items?|records?|results?|entries|lines?|bytes|bits|documents?|hits?|keys?|messages?|objects?|points?|rules?|users?|values?|seconds?|milliseconds?|minutes?|times|of)\b`)
)

// leadsToStatus reports whether the number between two texts is the status of an HTTP response, in the notation of
// access logs or messages. It uses no expression since it is called for every number of a log.
func leadsToStatus(before, after string) bool {
	if strings.HasSuffix(before, `" `) {
		return true
	}
	head := strings.TrimRight(before, ` "=:`)
	between := before[len(head):]
	if !strings.ContainsAny(between, " =:") {
		return false
	}
	low := strings.ToLower(head)
	if between == " " && strings.HasSuffix(strings.TrimRight(low, "0123456789."), "http/") {
		return true
	}
	if endsInWord(low, "http") && strings.Trim(between, " :") == "" {
		return true
	}
	for _, word := range statusWords {
		if endsInWord(low, word) {
			return true
		}
	}
	for _, word := range answerWords {
		if endsInWord(low, word) {
			return !slices.ContainsFunc(otherCodes, func(other string) bool { return endsInWord(low, other) }) && !countedExpr.MatchString(after[:min(len(after), 40)])
		}
	}
	return false
}

func endsInWord(text, word string) bool {
	rest, ok := strings.CutSuffix(text, word)
	return ok && (rest == "" || !isWord(rest[len(rest)-1]))
}

func isWord(c byte) bool {
	return isDigit(c) || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// base is the score for the weightiest phrase of a line, by the level that it declares.
var base = map[level][grave + 1]int{
	unleveled:  {0, 12, 35, 38, 48},
	debugLevel: {0, 0, 0, 0, 20},
	infoLevel:  {0, 0, 22, 32, 36},
	warnLevel:  {22, 24, 34, 38, 44},
	errorLevel: {48, 50, 55, 57, 60},
	fatalLevel: {58, 60, 64, 66, 68},
}

// mayBeKeyed limits the expressions to few lines.
func mayBeKeyed(line string) bool {
	return strings.Contains(line, `"warn`) || strings.Contains(line, `"err`) || strings.Contains(line, `"fatal`) || strings.Contains(line, `"panic`)
}

// scoreLine returns how strongly a line indicates a problem; 0: not at all. full reports that it ran all expressions.
func scoreLine(line string) (score int, full bool) {
	most, beyond := hits(line)
	status := 0
	if hasStatus(line) {
		status = StatusOf(line)
	}
	pino := strings.Contains(line, `"level":`) && pinoLevels.MatchString(line)
	coded := isCoded(line)
	long := mayBeLong(line) && longTimeExpr.MatchString(line)
	if mayBeKeyed(line) && calmKeyExpr.MatchString(line) {
		line = calmKeyExpr.ReplaceAllString(line, " ")
		most, beyond = hits(line)
	}
	keyed := mayBeKeyed(line) && keyedExpr.MatchString(line)
	if most == 0 && status < 400 && !pino && !klogExpr.MatchString(line) && !coded && !long && !keyed {
		return 0, false
	}
	calm := line
	if most > 0 {
		for _, expr := range calmExprs {
			if expr.MatchString(calm) { // replacing costs much more
				calm = expr.ReplaceAllString(calm, " ")
			}
		}
	}
	if most > 0 {
		if said := levelOf(line); said == infoLevel || said == debugLevel {
			if spokenExpr.MatchString(calm) {
				calm = spokenExpr.ReplaceAllString(calm, " ")
			}
			if quotedExpr.MatchString(calm) && !strings.HasPrefix(line, "{") {
				calm = quotedExpr.ReplaceAllString(calm, "$1 ")
			}
		}
	}
	if calm != line {
		most, beyond = hits(calm)
	}
	at := levelOf(calm)
	if most < fault && coded {
		most, beyond = fault, true
	}
	if long {
		most, beyond = max(most, known), true
	}
	score = base[at][most]
	if at == infoLevel && most == fault && fieldLevelExpr.MatchString(line) {
		score = hintBelow - 6 // the program itself does not consider it a problem
	}
	if at == errorLevel && !beyond {
		score = base[at][0]
	}
	switch {
	case status >= 500:
		score = max(score, 33)
	case status == 401, status == 403, status == 429, status == 402, status == 407, status == 413:
		score = max(score, refusalScore)
	}
	if at < errorLevel && most < grave {
		penalty := penaltyOf(line)
		if penalty > 0 && most < fault {
			return 0, true
		}
		if penalty > 0 {
			score = max(1, score-penalty)
		}
	}
	if score > 0 && consequenceExpr.MatchString(line) {
		score = max(1, score-6)
	}
	return score, true
}

// penaltyOf returns the deduction for text in a line that explains no fault.
func penaltyOf(line string) int {
	switch {
	case successExpr.MatchString(line) && !unrestoredExpr.MatchString(line):
		return successPenalty
	case decoyExpr.MatchString(line):
		return decoyPenalty
	}
	return 0
}

// consequenceExpr matches a line about the consequence of a fault that another line reports.
var consequenceExpr = regexp.MustCompile(`(?i)` + wordlist.AnyOf(
	`\bretry(ing)?\b`, `\breconnecting\b`, `\bnext (try|attempt)\b`, `\bwill retry\b`, `\b(request|job|task|sync|command|operation) failed\b\.?"?$`, `^\S+ \S+ \S+ \[.*\] "`, `\bexception in ASGI application`, `\bfailed to (create|validate) connection\b`,
))

// refusalScore is the score of a response that refuses a request.
const refusalScore = 21

// hasStatus reports whether a line may contain an HTTP status of 400 or above; other lines need no search.
func hasStatus(line string) bool {
	for i := 0; i+2 < len(line); i++ {
		if (line[i] == '4' || line[i] == '5') && isDigit(line[i+1]) && isDigit(line[i+2]) && (i == 0 || !isDigit(line[i-1])) && (i+3 == len(line) || !isDigit(line[i+3])) {
			return true
		}
	}
	return false
}

// isCoded reports whether a line has an error number as mail servers, C libraries and databases write it.
func isCoded(line string) bool {
	digit := strings.ContainsAny(line, "0123456789")
	return digit && (strings.Contains(line, "4.") || strings.Contains(line, "5.")) && smtpExpr.MatchString(line) ||
		mayHaveErrno(line, digit) && errnoExpr.MatchString(line)
}

// mayHaveErrno reports whether a line may match errnoExpr: comparing bytes costs less than the expression.
func mayHaveErrno(line string, digit bool) bool {
	if digit {
		for _, code := range []string{"ORA", "TNS", "AH", "SQL", "DB2", "[Errno ", "("} {
			if strings.Contains(line, code) {
				return true
			}
		}
	}
	for at := strings.Index(line, "E"); at >= 0 && at+6 < len(line); {
		if isUpper(line[at+1]) && isUpper(line[at+2]) && isUpper(line[at+3]) && isUpper(line[at+4]) {
			return true
		}
		next := strings.Index(line[at+1:], "E")
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return false
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// mayBeLong reports whether a line has a number of at least two digits before an s or ms.
func mayBeLong(line string) bool {
	for i := 2; i < len(line); i++ {
		if c := line[i] | 0x20; c != 's' && c != 'm' {
			continue
		}
		if at := strings.TrimRight(line[max(0, i-2):i], " "); at != "" && isDigit(at[len(at)-1]) {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
