package question

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Intent is the intent of a sentence.
type Intent int

// The intents. The zero value is a sentence that was not understood.
const (
	Unclear   Intent = iota
	Greeting         // also thanks, and what can you do
	Assent           // "ok", "yes but later": approves nothing, since it is no decision word
	Line             // a kubectl line
	Request          // a change, to be proposed
	Held             // a change that is denied, postponed or conditional: nothing is proposed
	Order            // what seems a request for a change, and is not understood
	Advice           // what a change would do, or whether to make it
	Diagnosis        // what is wrong, and why

	Overview
	Health
	UnhealthyPods
	Warnings
	Restarts
	Starts // when something last started
	Usage
	Capacity
	Quotas
	NoLimits
	NoProbes
	Events
	EmptyServices
	External
	ErrorLogs
	ErrorRate
	Latency
	RecentChanges
	Images
	Idle
	EnvSecrets
	DrainPlan
	WhoCan

	Secrets // their names and keys
	Keys    // what a ConfigMap or Secret holds
	Users   // what uses a ConfigMap, Secret, claim or service account
	Number  // how many, or which pods with a label, an image, on a node
	Clock   // what time it is
	Manual  // commands for users to run themselves: port-forward, exec
	Runbook // the team's written instructions
	Reach   // whether one side reaches the other
	// Certificates is about those in TLS Secrets: their hosts and dates.
	Certificates
	// Applications is about the state of Argo CD applications.
	Applications
	Releases     // of Helm
	Dependencies // what something needs, and what calls it
	Prices       // what something costs
	List
	Facts // what the fields of objects hold
	Describe
	Logs
	History // revisions
)

// intentNames are the names of the intents in the vocabulary and the manual, in their order.
var intentNames = [...]string{
	"unclear", "greeting", "assent", "line", "request", "held", "order", "advice", "diagnosis", "overview", "health", "unhealthy_pods", "warnings",
	"restarts", "starts", "usage", "capacity", "quotas", "no_limits", "no_probes", "events", "empty_services", "external", "error_logs", "error_rate", "latency",
	"recent_changes", "images", "idle", "env_secrets", "drain_plan", "who_can", "secrets", "keys", "users", "number", "clock", "manual", "runbook", "reach", "certificates", "applications", "releases", "dependencies", "prices", "list", "facts", "describe", "logs", "history",
}

// String returns the name of an intent.
func (i Intent) String() string { return intentNames[i] }

// rule defines the sentences of an intent: those that expr matches and not does not match.
type rule struct {
	intent    Intent
	expr, not *regexp.Regexp
}

var whyExpr = Pattern(wordlist.AnyOf(
	`\bwhy\b`, `\bhow come\b`, `^wtf\b`, `\bwhat is causing\b`, `\bwhat causes\b`, `\breason for\b`,
	`\broot cause\b`, `\bwhat (makes|made)\b`,
))

// lacksExpr matches a sentence that begins with what is missing: "no temperature readings from greenhouse", "no bids
// are going in".
var lacksExpr = Pattern(`^no (\w+ )?\w+s (\w+ )*(from|in|on|at|into|to|of|since|for|are|were|get|reach|come|go|arrive)\b`)

// stated are the intents that a complaint has only if it begins with what to list: "events of the failing pods".
var stated = map[Intent]bool{Events: true, Restarts: true, RecentChanges: true}

var headExpr = Pattern(`^(please |can you |could you |i want |i need |to see |show |list |give |get |me |the |all |any |recent |latest |last |new )*(events?|restarts?|restarted|changes?|crash counts?)\b`)

// badExpr matches a sentence about something that does not work.
var badExpr = Pattern(`\b` + wordlist.AnyOf(
	"wrong", "broken", `break\w*`, "broke", "down", `fail\w*`, `crash\w*`, "stuck", "errors?", "problems?",
	"issues?", `trouble\w*`, "debug", `diagnos\w+`, "investigate", "troubleshoot", "unhealthy", "pending",
	"backoff", `oom\w*`, "evicted", "dying", "die", "dies", "died", "dead", `hang\w*`, "hung", "unreachable",
	"timeouts?", "timing out", "times out", "refused", "denied", "forbidden", "unavailable", "terminating",
	"on fire", "restart(ing|s)", "restart loop", "slow", "blocked", "unbound", "throttled", "incident", "outage",
	`50\ds?`, "40[134]s?", `crashloop\w*`, `imagepull\w*`, `errimage\w*`, `init:\S*`, `createcontainer\w*`,
	"containercreating", "notready", "unschedulable", "missing", "lost", "sick",
	"not "+wordlist.AnyOf(
		`work\w*`, `start\w*`, "ready", `run\w*`, "come", "coming", `respond\w*`, `answer\w*`, `reach\w*`,
		`connect\w*`, `scal\w*`, `schedul\w*`, `resolv\w*`, `get\w*`, `show\w*`, `serv\w*`, "available", "there",
		"found", "up", "healthy", "ok", "okay", "responding", `deploy\w*`, `pull\w*`, `bind\w*`, `mount\w*`,
		`terminat\w*`, "rolled", `updat\w*`,
	),
	"no (traffic|response|pods|endpoints|reply|answer)", `(gets?|got|has|have|with) no \w+( ip)?$`, `no \w+ (gets?|reach(es)?|arrives?|comes?|leaves?|goes?)`, "nothing (works|runs|happens|starts)", `\w+s nothing`, `not (a|one|even (a|an|one))( single)? \w+ (gets?|reach(es)?|arrives?|comes?|leaves?|goes?|shows?)`, `ignor(es|ed|ing)`, `(holes?|gaps?) in`, `never (gets?|reach\w*|finish\w*|ends?|complet\w*|start\w*|arriv\w*|comes?)`, `no (pods?|logs?)`, `not even (an? |one )?logs?`,
	"where (is|are|did|have) (my|our|the|all)", "look into", "what is up", "what is going on", "wtf", "gone",
	"disappeared", "vanished", "expired", "acting up", `misbehav\w*`, "weird", "strange", "flaky", "flapping", "unstable",
	"degraded", `(is|are|looks?|all|everything|went|turned) red`, "hates? (me|us)", `falls? over`, `falling over`, "not happy", "unhappy", "on its knees", "knocked out", "melting", "choking",
	"too (many|much|few|high|low)", "no space", "(disk|volume|queue|memory) (is )?full", "out of (memory|disk|space|cpu|ram|pods|ips)", "what (should|do|can|could) (i|we) do( now)?$", "what now$",
) + `\b`)

var (
	listExpr = Pattern(`^` + wordlist.AnyOf(
		"list", "show", "get", "what", "which", "display", "give", "print", "see", "find", "fetch", "how many",
		"count", "enumerate", "are there", "is there", "do we have", "view", "look up",
	) + `\b`)
	describeExpr = Pattern(`^` + wordlist.AnyOf(
		"describe", "explain", "details", "tell", "inspect", "show", "info", "information", "get", "look at",
		"check", "view", "what is", "give", "status",
	) + `\b`)
)

// tables are the intents that a complaint never has, whatever it names.
var tables = map[Intent]bool{Prices: true, Certificates: true, Applications: true, Releases: true, NoProbes: true, Secrets: true, Keys: true, Users: true, External: true, Quotas: true, Capacity: true, Overview: true, Usage: true, Runbook: true}

var (
	// askExpr matches the beginning of a question about a fact.
	askExpr = Pattern(`^(who|whose|how (many|much|often|full)|is|are|do|does|did|can|could|has|have|any|explain|tell|runbooks?|quotas?|secrets?)\b`)
	// wrongExpr matches the beginning of a question about what is wrong with something.
	wrongExpr = Pattern(`^(so |and |but )?what is (wrong|broken|the (matter|problem|issue|trouble)) with\b`)
	// stateExpr matches the end of a question about whether something is in trouble.
	stateExpr = Pattern(`\b(is|are) (it|they|this|that|something|anything) (really |actually |now |still )?(fail\w*|broken|down|wrong|bad|unhealthy|in trouble|a problem|the problem)$`)
)

// hypothesisExpr matches a question whether a suspected cause is the cause.
var hypothesisExpr = Pattern(`^(so |and |but |maybe |perhaps )?((is|was) (it|this|that)|(could|can|might|may) (it|this|that) be|it is) (again |always |just |maybe |probably )?(a |an |the |our )?(\w+ )?` +
	`(dns|network\w*|firewalls?|storage|disks?|volumes?|nodes?|memory|cpu|quotas?|certificates?|certs?|tls|probes?|images?|registry|ingress|limits?|secrets?|configs?|policy|policies|webhooks?)( problem| issue| thing| trouble| again)?$`)

// negatedExpr matches a sentence about what does not happen.
var negatedExpr = Pattern(`\b(does|do|did|is|are|was|were|will|would|can|could|has|have) not\b`)

// hasSureName reports whether a sentence certainly names an object.
func hasSureName(p place) bool {
	return slices.ContainsFunc(p.mentions, func(m Mention) bool { return m.Sure })
}

// AsksWhy reports whether a sentence, in lower case, asks for a cause.
func AsksWhy(words string) bool { return whyExpr.MatchString(words) }

// isPlural reports whether a word is the plural of a kind.
func isPlural(low string) bool {
	return strings.HasSuffix(low, "s") && kindOf(low) != "" && kindOf(strings.TrimSuffix(low, "s")) == kindOf(low)
}

// intentOf returns the intent of a sentence that is not a request for a change.
func intentOf(s sentence, p place) Intent {
	why := whyExpr.MatchString(s.low) || stateExpr.MatchString(s.low)
	complains := wrongExpr.MatchString(s.low) || !listExpr.MatchString(s.low) && !askExpr.MatchString(s.low) && (badExpr.MatchString(s.low) || negatedExpr.MatchString(s.low) || !s.asks && len(s.words) > 3 && symptomsOf(s.low) != nil && hasSureName(p))
	for _, r := range rules {
		if complains && (tables[r.intent] || stated[r.intent] && !headExpr.MatchString(s.low) || r.intent == UnhealthyPods && !s.asks && hasSureName(p)) {
			continue // "web cannot read its secret" does not want a list of Secrets, nor "api is slow and restarts" a table of restarts
		}
		if !why && r.expr.MatchString(s.low) && (r.not == nil || !r.not.MatchString(s.low)) {
			return r.intent
		}
	}
	switch {
	case why || badExpr.MatchString(s.low), lacksExpr.MatchString(s.low), hypothesisExpr.MatchString(s.low):
		return Diagnosis
	case p.kind != "" && (listExpr.MatchString(s.low) || s.starts("any")):
		return List
	case describeExpr.MatchString(s.low) && slices.ContainsFunc(p.mentions, func(m Mention) bool { return m.Sure }):
		return Describe
	case p.kind != "" && (len(s.words) == 1 || isPlural(s.words[0].low) && !s.words[0].quoted && !negatedExpr.MatchString(s.low) && !hasSureName(p) && symptomsOf(s.from(1).low) == nil):
		return List // "pods in shop"
	case negatedExpr.MatchString(s.low), !s.asks && len(s.words) >= 3 && slices.ContainsFunc(p.mentions, func(m Mention) bool { return m.Sure }):
		return Diagnosis // a statement about something is a complaint
	case len(s.words) <= 3 && len(p.mentions) > 0, len(s.words) <= 3 && p.namespace != "":
		return Diagnosis // "api?", "shop/web", "deployment api"
	}
	return Unclear
}
