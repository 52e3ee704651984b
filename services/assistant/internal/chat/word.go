package chat

import (
	"regexp"
	"strings"
	"unicode"
)

// Verdict is the decision that a decision word makes. The zero value decides nothing.
type Verdict int

// The verdicts.
const (
	NoVerdict      Verdict = iota
	Approve                // the one waiting action
	Deny                   // every waiting action
	ApproveOne             // the action of the id
	DenyOne                // the action of the id
	ApproveAll             // the waiting action if it may be approved this way, and later writes
	AutoApproveOff         // ends ApproveAll
)

func (v Verdict) String() string {
	switch v {
	case Approve:
		return "approve"
	case Deny:
		return "deny"
	case ApproveOne:
		return "approve_one"
	case DenyOne:
		return "deny_one"
	case ApproveAll:
		return "approve_all"
	case AutoApproveOff:
		return "auto_approve_off"
	}
	return "none"
}

// Word is a query read as a decision.
type Word struct {
	Verdict  Verdict
	ActionID string // of ApproveOne and DenyOne, lower-case
	Reason   string // of DenyOne, optional
}

// Word returns the decision that the message consists of, if its words may decide. With page content below it, a word
// decides nothing either: text that a client adds there must not make a question a decision.
func (r Request) Word() Word {
	if r.NoDecisions || r.Page != "" {
		return Word{}
	}
	return ParseWord(r.Query)
}

// Withheld reports whether the message is a decision word that may not decide.
func (r Request) Withheld() bool {
	return (r.NoDecisions || r.Page != "") && ParseWord(r.Query).Verdict != NoVerdict
}

// maxReason limits a reason, in code points.
const maxReason = 500

// words are compared with the whole query, so that "yes but later" approves nothing.
var words = map[string]Verdict{
	"yes": Approve, "approve": Approve, "/approve": Approve, "proceed": Approve,
	"no": Deny, "deny": Deny, "/deny": Deny, "cancel": Deny,
	"approve all": ApproveAll, "auto-approve": ApproveAll,
	"auto-approve off": AutoApproveOff,
}

const idPattern = `[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`

var (
	oneExpr = regexp.MustCompile(`^/?(?i:(approve|deny))[ \t]+(` + idPattern + `)(?:\s+(?s:(.*)))?$`)
	idExpr  = regexp.MustCompile(`\b` + idPattern + `\b`)
)

// ParseWord reads a query, without its context groups, as a decision.
func ParseWord(query string) Word {
	q := strings.TrimSpace(query)
	if v, ok := words[lowerASCII(q)]; ok {
		return Word{Verdict: v}
	}
	m := oneExpr.FindStringSubmatch(q)
	switch {
	case m == nil:
		return Word{}
	case lowerASCII(m[1]) == "deny":
		return Word{Verdict: DenyOne, ActionID: lowerASCII(m[2]), Reason: cleanReason(m[3])}
	case m[3] != "": // "approve <id>, but…" is no approval
		return Word{}
	}
	return Word{Verdict: ApproveOne, ActionID: lowerASCII(m[2])}
}

// lowerASCII lowers ASCII letters only: no look-alike letter becomes part of a word.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// cleanReason returns one line without control characters, as log and prompt can show it.
func cleanReason(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	s, _ = cutText(strings.Join(strings.Fields(s), " "), maxReason)
	return strings.TrimSpace(s)
}
