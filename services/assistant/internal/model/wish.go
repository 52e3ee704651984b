package model

import (
	"regexp"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// wish is what the person wants of a turn, as far as the model's writes are concerned.
// It is read off the person's words alone: whatever a log talks the model into, a
// question changes nothing.
type wish int

const (
	look   wish = iota // a question
	change             // a change, or what cannot be told
	denied             // a change was denied just now
)

// verbs name changes.
var verbs = wordlist.AnyOf(
	"scale", "restart", "roll", "rollback", "undo", "revert", "fix", "repair", "resume", "unsuspend", "suspend", "pause",
	"set", "raise", "increase", "lower", "reduce", "decrease", "change", "update", "delete", "remove", "create", "apply",
	"patch", "cordon", "uncordon", "drain", "evict", "label", "annotate", "taint", "untaint", "expose", "autoscale", "run",
	"replace", "add", "bump", "kill", "stop", "start", "deploy", "enable", "disable", "make",
)

// orders are the verbs and the phrases that stand for one.
var orders = wordlist.AnyOf(verbs, "go ahead", "do (?:it|that|this|so)")

var (
	// newTurn is how questions begin in English, "how do I restart it" among them.
	newTurn = regexp.MustCompile(`(?i)^\W*` + wordlist.AnyOf(
		"why", "what", "what's", "where", "which", "who", "whose", "when", "how", "is", "are", "was", "were", "does",
		"did", "has", "have", "should", "would", "hello", "hi", "thanks", "do (?:you|we|they|i|the|these|those|any)",
	) + `\b`)
	// reading is how orders begin that change nothing, and further one that does.
	reading = regexp.MustCompile(`(?i)^\W*(?:please )?` + wordlist.AnyOf(
		"show", "list", "get", "describe", "explain", "diagnose", "investigate", "find", "check", "tell", "look",
		"summari[sz]e", "wait",
	) + `\b`)
	further = regexp.MustCompile(`(?i)(?:\band\b|\bthen\b|[,;.])\s*(?:please |then |also )*` + verbs + `\b`)
	// curious is a question that does not begin as one, ordering a message that begins with
	// a change or a request for one.
	curious  = regexp.MustCompile(`(?i)\?\s*$|\bwhy\b`)
	ordering = regexp.MustCompile(`(?i)^\W*(?:` + wordlist.AnyOf(
		"please", "can you", "could you", "will you", "would you", "ok", "okay", "yes", "now", "then", "just",
	) + `\W+)*` + orders + `\b`)
	// english is what only English has, and naming is any change that English names.
	english = regexp.MustCompile(`(?i)\b(the|is|are|it|to|of|and|my|not|cannot|can't|doesn't|with|for|but|later)\b`)
	naming  = regexp.MustCompile(`(?i)\b` + orders + `\b`)
	// done is a claim to have changed something.
	done = regexp.MustCompile(`(?i)(\bI(?:'ve|’ve| have)?\s+` + wordlist.AnyOf(
		"just ", "now ", "successfully ", "already ",
	) + `*` + wordlist.AnyOf(
		"scaled", "restarted", "rolled", "reverted", "deleted", "removed", "applied", "patched", "created",
		"updated", "fixed", "resumed", "suspended", "paused", "cordoned", "uncordoned", "drained", "changed", "set",
		"raised", "evicted",
	) + `\b|^\W*done\b|\bsuccessfully ` + wordlist.AnyOf(
		"scaled", "restarted", "rolled", "deleted", "applied", "patched", "created", "updated", "changed",
	) + `\b)`)
)

func wishOf(t turn.Turn) wish {
	if len(t.Settled) > 0 {
		for _, s := range t.Settled {
			if s.Action.State == action.Denied {
				return denied
			}
		}
		return change // the next one of an earlier request
	}
	q := t.Query
	switch {
	case ordering.MatchString(q):
		return change
	case newTurn.MatchString(q), (reading.MatchString(q) || curious.MatchString(q)) && !further.MatchString(q),
		english.MatchString(q) && !naming.MatchString(q):
		return look
	}
	return change
}

// claimsChange reports whether an answer pretends that something was changed.
func claimsChange(answer string) bool { return done.MatchString(answer) }
