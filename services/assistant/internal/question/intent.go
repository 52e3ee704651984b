package question

import (
	"regexp"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Intent is the intent of a sentence.
type Intent int

// The intents. The zero value is a sentence that was not understood.
const (
	Unclear   Intent = iota
	Greeting         // and thanks, and what can you do
	Assent           // "ok", "yes but later": approves nothing, since it is no decision word
	Line             // a kubectl line
	Request          // a change, to be proposed
	Held             // a change that is denied, put off or conditional: nothing is proposed
	Advice           // what a change would do, or whether to make it
	Diagnosis        // what is wrong, and why

	Overview
	Health
	UnhealthyPods
	Warnings
	Restarts
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
	Manual  // what only a person runs: port-forward, exec
	Runbook // what a team wrote down
	Reach   // whether one side reaches the other
	// Certificates asks of those in TLS Secrets: for whom they are, and until when.
	Certificates
	// Applications asks how those of Argo CD are.
	Applications
	Releases // of Helm
	Prices   // what something costs
	List
	Describe
	Logs
	History // revisions
)

// rule gives sentences that match an intent. Those that ask why match none: they want
// a cause, not a table.
type rule struct {
	intent Intent
	expr   *regexp.Regexp
}

func newRule(i Intent, expr string) rule { return rule{i, regexp.MustCompile(expr)} }

var whyExpr = regexp.MustCompile(wordlist.AnyOf(
	`\bwhy\b`, `\bhow come\b`, `^wtf\b`, `\bwhat is causing\b`, `\bwhat causes\b`, `\breason for\b`,
	`\broot cause\b`, `\bwhat (makes|made)\b`,
))

// rules are tried in order. The sentence is in lower case, without punctuation.
var rules = []rule{
	newRule(Greeting, `^(hi|hello|hey|yo|thanks|thank you|thx|ty|good (morning|evening|night)|cheers|help|help me|what can (you|i) (do|ask).*|who are you|how do you work|commands)( there| assistant| again)?$`),
	newRule(WhoCan, `\bwho (can|may|could)\b|\bwho (is|are) (allowed|permitted|able)\b|\bwho has (the )?(access|permissions?|rights?|a role)\b|\b(can|may|is|does) (the )?(serviceaccount|service account|user|group|sa)\b.*\b(get|list|watch|create|update|patch|delete|read|write|allowed|access|exec|have)\b`),
	newRule(Clock, `^(please )?(what time is it|what is the (current |exact )?(time|date)|what (date|day|year) is (it|today)|tell me the (time|date)|current (time|date)|do you know (what time it is|the (time|date)))( now| right now| today| there| in the cluster)?$`),
	newRule(Manual, `\bport[ -]?forward(ing)?\b|\b(exec|shell|ssh)\b (me )?(in ?to|in|on|inside|onto)\b|\b(open|get|give me|start|need|want) a (shell|terminal|console)\b|^(please )?(how (do|can|could|would|to)( i| we)?|where do i|can (i|we|you)|could (i|we|you)|i (want|need|have|would like)( to)?|we (want|need)( to)?|let (me|us)|help me( to)?)? ?(get|hop|jump|log|go|connect)( me)? (in ?to|inside|onto)\b.*\b(pods?|containers?|nodes?)( \S+)?$|\b(copy|download)\b.*\bfiles? (from|to|into|out of)\b`),
	newRule(Runbook, `\brunbooks?\b`),
	newRule(Certificates, `\b(certificates?|certs?)\b.*\b(ok|okay|fine|good|valid|healthy|alright|sound|expir\w+|renew\w*|dates?|until when|how long)\b|\b(check|verify|validate|list|show|any|how|when|which|expiring|expired)\b.*\b(certificates?|certs?)\b|^(the |my |our )?(tls )?(certificates?|certs?)$`),
	newRule(Releases, `\bhelm\b.*\b(releases?|charts?|revisions?|history|status|installed)\b|\b(releases?|installed|deployed)\b.*\b(by|with|of|from) helm\b|^helm( list| ls)?$`),
	newRule(Applications, `\bargo( ?cd)?\b.*\b(apps?|applications?)\b|\b(apps?|applications?)\b.*\b(argo( ?cd)?|synced|out ?of ?sync|sync status)\b|^(which|what|list|show) .*\bout ?of ?sync\b|^argo ?cd$`),
	newRule(Usage, `\b(who|what|whose|which \w+)( is| has| keeps)?( been)? (ate|eat(s|ing|en)?|hog(s|ging|ged)?|burn(s|ing|ed|t)?|chew(s|ing)?|gobbl\w+|us(es?|ing|ed)|tak(es?|ing)|consum\w+|steal(s|ing)?|stole)\b.*\b(cpu|memory|mem|ram|cores?)\b`),
	newRule(Usage, `\b(use|uses|using|consum\w+|eats?|takes?|burns?|needs?)\b.*\b(most|least|highest|lowest)\b.*\b(cpu|memory|mem|ram|cores?)\b|\b(least|lowest|smallest)\b.*\b(cpu|memory|mem|ram)\b`),
	newRule(Prices, `^(how much|what|which|who)\b.*\b(costs?|money|prices?|pays?|paying|spend(s|ing)?|bills?|expensive|cheap|cheapest)\b|\bhow (expensive|costly|cheap)\b|\b(costs?|price|bill) (of|for)\b`),
	newRule(Idle, `\bidle\b|\bunused\b|\bscaled (down )?to (0|zero)\b|\bnot (being )?used\b|\bdoing nothing\b|\b(zero|0|no) replicas\b|\bwast(ed|ing|e)\b|\bnobody uses\b|\bcan be (removed|deleted|cleaned)|\bsuspended\b`),
	newRule(Keys, `\b(which|what|list|show|get|the|all|how many)?\b ?\b(keys|entries|items)\b.*\b(configmaps?|cm|secrets?|of|in|has|have)\b|\bwhat (is|stands) in (the )?(configmaps?|cm|secrets?)\b|\bwhat does (the )?(configmaps?|cm|secrets?)\b.*\b(contain|hold|have|say)\b|\b(contents?|data) of (the )?(configmaps?|cm|secrets?)\b`),
	newRule(Users, `\b(everything|anything|all|everyone) (that |which )?(uses?|mounts?|needs?|reads?|depends? on)\b|\b(what|which|who|list|show|how many|workloads|pods|deployments)\b.*\b(uses?|using|mounts?|mounting|needs?|reads?|references?|referencing|depends? on|consumes?|runs? as|relies on|rely on)\b.*\b(configmaps?|cm|secrets?|persistentvolumeclaims?|pvcs?|claims?|volumes?|serviceaccounts?|sa)\b|\b(who|what) (uses|mounts|needs|reads|references|depends on)\b|\bused by (who|what|which)\b|\bwhere is\b.*\bused\b`),
	newRule(Images, `\bimages?\b|\b(which|what|list|show|the)\b.*\b(versions?|tags?)\b|\bversions? (of|running|deployed)\b|\bwhat version\b`),
	newRule(RecentChanges, `\bwhat (has |have |was |did |just |recently )*chang|\brecent(ly)?\b.*\b(change|deploy|rollout|release|update)|\b(change|deploy|rollout|release|update)\w*\b.*\brecent|\b(last|latest) (changes?|deploys?|deployments?|releases?|rollouts?|updates?)\b|\bwho (has |just )?(changed|scaled|restarted|deployed|deleted|touched|updated|rolled|broke|edited)\b|\b(did|has|have) (somebody|someone|anybody|anyone|we|you|they|any of us|any one)\b.*\b(chang|scal|restart|deploy|delet|touch|updat|roll|edit|push|ship|releas|drain|cordon|bounce|kill)|\bwhen (was|were|did|has)\b.*\b(chang|scal|restart|deploy|updat|roll|touch|creat|delet|releas)|\b(was|were|has|have|is|are)\b.*\b(been )?(scaled|changed|deployed|touched|updated|rolled (back|out)|edited|released)\b|\bwhat (was|is|got) (deployed|released|rolled out) (today|yesterday|last|lately|in the last|since|this)`),
	newRule(DrainPlan, `\bdrain plan\b|\bplan\b.*\bdrain|\b(what|which)\b.*\b(if|when)\b.*\b(drain|evict|cordon)|\b(what|which)\b.*\b(happens?|moves?|affected|evicted)\b.*\bdrain|\b(safe|ok|okay|possible|risky|can (i|we|you)|could (i|we)|should (i|we)|may (i|we)|how (do|can|would) (i|we))\b.*\bdrain|\b(before|prior to)\b.*\bdrain|\bdrain(ing)?\b.*\b(safe|impact|affect|possible|risk)|\bdry.?run\b.*\bdrain|^(simulate|preview|plan)\b.*\bdrain`),
	newRule(EnvSecrets, `\b(secrets?|passwords?|credentials?|tokens?|api keys?)\b.*\b(in|as|inside|from|through|via)\b.*\b(env|envs|environment|variables?|plain ?text|plain)\b|\b(env|environment|variables?)\b.*\b(secrets?|passwords?|credentials?|tokens?)\b|\bplain ?text\b.*\b(secrets?|passwords?)|\bhard ?-?coded\b`),
	newRule(Secrets, `\b(show|list|get|print|dump|give|display|read|decode|reveal|what|which|see|export)\b.*\b(secrets?|passwords?|credentials?)\b|^(all )?secrets?( in .*)?$|\bvalues? of\b.*\b(secret|password)`),
	newRule(EmptyServices, `\bservices?\b.*\b(without|with no|with zero|no|lacking|missing|empty|have 0|having no)\b.*\b(endpoints?|backends?|pods)\b|\b(empty|dead) services?\b|\bno endpoints\b|\bservices?\b.*\b(dead|empty|lead nowhere|point(ing)? (to )?(nothing|nowhere))\b|\bendpoints? (missing|empty)\b`),
	newRule(External, `\bexternal(ly)?\b|\bexposed\b|\bpublic(ly)?\b|\bload ?-?balancers?\b|\bnode ?-?ports?\b|\b(reachable|accessible|open|visible|available) (from|to)( the)? (outside|internet|world|public)|\bfacing the internet|\binternet.facing\b`),
	newRule(NoProbes, `\b(without|no|missing|lack|lacks|lacking|not have|unset)( (a|an|any|the|readiness|liveness|startup|health|and|or))* probes?\b`),
	newRule(NoLimits, `\b(without|no|missing|lack|lacks|lacking|unset|not have|not set|have no|set no|unbounded)( (a|an|any|the|all|their|cpu|memory|mem|ram|resources?|limits?|requests?|and|or|of|set|with|for))* (limits?|requests?)\b|\b(limits?|requests?)\b.*\b(missing|not set|unset|absent)\b|\bunlimited\b`),
	newRule(ErrorRate, `\berror (rate|ratio|percent\w*|budget)\b|\bfailure rate\b|\bhow many (errors|5xx|500s|failed requests)\b|\b(5xx|500s) (rate|count|per)|\brate of (errors|5xx|failures)\b|\bsuccess rate\b|^5xx\b`),
	newRule(Latency, `\blatency\b|\blatencies\b|\bresponse times?\b|\bp(50|90|95|99|999)\b|\bhow (slow|fast|quick)\b|\brequest duration\b|\bslow(est)? (requests?|endpoints?|services?|responses?)\b`),
	newRule(ErrorLogs, `\b(error|errors|exceptions?|panics?|stack ?traces?|fatal)\b.*\blogs?\b|\blogs?\b.*\b(errors?|exceptions?|panics?|fatals?|stack ?traces?)\b|\berror (lines|messages)\b|^(any |show |list |recent |latest |show me )*(the )?(errors|exceptions|panics|stack ?traces)\b|\bwhat errors\b|\bany (exceptions|panics|stack ?traces)\b`),
	newRule(History, `\b(rollout|revision|release|deploy\w*) history\b|\brevisions\b|\bhistory of\b|\b(previous|earlier|old) (versions|revisions|releases)\b`),
	newRule(Logs, `^what (did|does|has|have) \S+( in \S+)? (just )?(say|said|print(ed)?|log(ged)?|output|write|written)\b|\blast (words|output|lines?) (of|from)\b|^(show|get|give|print|tail|see|display|read|fetch|check|view|what|please)?\b.*\blogs?\b|^tail\b`),
	newRule(Quotas, `\bquotas?\b`),
	newRule(Capacity, `\bcapacity\b|\ballocatable\b|\bhead ?room\b|\bhow full\b|\b(free|spare|left|remaining|available)\b.*\b(cpu|memory|mem|ram|room|space|resources)\b|\b(cpu|memory|mem|ram|room|space|resources)\b.*\b(free|left|spare|remaining|available)\b|\broom (for|left|on)\b|\bnodes?\b.*\b(cpu|memory|resources|requests|allocated|allocations?|full)\b|\bhow (big|large) (is|are)\b.*\b(nodes?|cluster)\b|\bcan\b.*\bfit\b|\benough (room|memory|cpu|nodes|resources|capacity)\b`),
	newRule(Usage, `\busage\b|\bconsum(e|es|ed|ing|ption)\b|\butili[sz]ation\b|\b(cpu|memory|mem|ram) hogs?\b|\bhow much (cpu|memory|mem|ram)\b|\busing\b.*\b(cpu|memory|mem|ram|resources)\b|\b(most|top|highest|biggest|largest)\b.*\b(cpu|memory|mem|ram)\b|\b(biggest|largest|heaviest|hungriest|fattest) (pods?|containers?|workloads?|deployments?|apps?)\b|^(show |kubectl )*top( pods?| nodes?)?\b|\buses? (the )?most\b|\beats?\b.*\b(cpu|memory|ram)\b`),
	newRule(Restarts, `\brestarts\b|\brestart counts?\b|\brestarted (the )?most\b|\bmost restarts\b|\bhow (often|many times)\b.*\brestart|\b(which|what)\b.*\brestart(s|ed|ing)?\b|\b(crash|restart) counts?\b`),
	newRule(Warnings, `\bwarnings?\b`),
	newRule(Events, `\bevents?\b|\bwhat (has )?happened\b`),
	newRule(UnhealthyPods, `\b(unhealthy|failing|failed|broken|crashing|crashed|crash ?loop\w*|not ready|unready|notready|not running|bad|stuck|pending|evicted|dead|problem\w*|non-running|sick|red) (pods?|containers?|workloads?)\b|\b(which|what|list|show|any|find|get|all|how many) .*\b(pods?|containers?|workloads?)\b.*\b(unhealthy|fail\w*|broken|crash\w*|not ready|unready|not running|stuck|pending|evicted|down|dead|dying|error\w*|problem\w*|trouble\w*|not healthy|not up)\b|\bpods? (that|which) (are|is) not\b|^(unhealthy|failing|broken|crashing|pending)$`),
	newRule(Health, `\bhealth(y)?\b|\bis (everything|all|it all|the cluster|my cluster|prod|production)\b.*\b(ok|okay|fine|good|up|healthy|well|green|alright|running|working)\b|\ball (good|green|ok|okay|well)\b|^(cluster |overall |current )*status\b|\bhow (is|are)\b.*\b(doing|cluster|things|everything|going|looking|prod|pods|namespace)\b|\bstatus of\b|^is \S+ (back )?(ok|okay|up|ready|alive|healthy|running|fine|working)\b|^(is|are) .*\b(ready|up and running|ok|okay|running|alive)$|^how is \S+$|^(are|is) (we|you|all|everything|stuff|things) (all )?(ok|okay|fine|good|up|healthy|green|alright|well)\b|^(we|all|everything|\S+( in \S+)?) (ok|okay|alright|fine|good|alive|healthy)$|\bsanity check\b|\bhealth ?check\b|\beverything (ok|okay|fine|good|alright)\b`),
	newRule(Overview, `\boverview\b|\bsummar(y|ise|ize)\b|\bwhat (is|are|do we have|have we got|runs?)\b.*\b(running|deployed|runs|here|there|installed)\b|\bwhat runs\b|\bwhat do (we|i) have\b|\binventory\b|\bdescribe (the|this|my|our) (cluster|namespace)\b|\bshow (me )?(the|this|my|our)? ?(cluster|namespace|everything)$|\bwhat is in\b|\btell me about (the|this|my|our) (cluster|namespace)\b|\bbig picture\b`),
}

// faultExpr is a sentence about an image that does not come.
var faultExpr = regexp.MustCompile(`\b(not|ignor\w*|fix|fail\w*|errors?|errimage\w*|wrong|broken|stuck|missing)\b`)

// otherExprs keep sentences from an intent whose words they have by chance.
var otherExprs = map[Intent]*regexp.Regexp{
	Images: faultExpr,
	// "can people log in" asks for no log.
	Logs: regexp.MustCompile(`\b(can|cannot|could|not|unable|users?|people|customers?|nobody|everybody|anyone)\b.*\blog(ging)? (in|out|on)\b`),
	// What mounts, logs or counts something, and names such as cert-manager, are no certificates.
	Certificates: regexp.MustCompile(`\b(logs?|errors?|mount(s|ed|ing)?|us(e|es|ed|ing)|cpu|memory|mem|ram)\b|\bkeys\b.*\b(of|in|has|have)\b|\bhow many (pods|containers|deployments|workloads)\b|\bcerts?-\w|\w-certs?\b`),
	// "no requests reach catalog" speaks of traffic.
	NoLimits: regexp.MustCompile(`\bno requests? (reach|get|come|arrive|go|are|to|from|hit)\w*\b`),
	// A question whether what was warned of still happens.
	Warnings: regexp.MustCompile(`\b(does|do|is|are) (it|they|that|this|these) still\b`),
	// What is called so, or has a use that is counted.
	Prices: regexp.MustCompile(`\b(wrong with|happened|broke|fail\w*|chang\w+|deploy\w*|images?|versions?|running|restart\w*|events?|warnings?)\b|\b(in|of) (pay|costs?|bills?|prices?|money)\b|\b(cpu|memory|mem|ram|logs?|pods)\b|\b(costs?|bills?|prices?|pay)-\w|\w-(costs?|bills?|prices?|pay)\b`),
	// "sounds good" is assent.
	Health: regexp.MustCompile(`^(that|thats|that is|this|it|its|it is|sounds?|looks?|seems|very|pretty|really|quite|so|yes|yeah|yep|no) (ok|okay|alright|fine|good)$`),
}

// lacksExpr begins with what is not there: "no temperature readings from greenhouse", "no bids are going in".
var lacksExpr = regexp.MustCompile(`^no (\w+ )?\w+s (\w+ )*(from|in|on|at|into|to|of|since|for|are|were|get|reach|come|go|arrive)\b`)

// stated are the intents that a complaint has only where it begins with what is to be listed: "events of the failing pods".
var stated = map[Intent]bool{Events: true, Restarts: true, RecentChanges: true}

var headExpr = regexp.MustCompile(`^(please |can you |could you |i want |i need |to see |show |list |give |get |me |the |all |any |recent |latest |last |new )*(events?|restarts?|restarted|changes?|crash counts?)\b`)

// badExpr is a sentence about something that does not work.
var badExpr = regexp.MustCompile(`\b` + wordlist.AnyOf(
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
	"no (traffic|response|pods|endpoints|reply|answer)", `no \w+ (gets?|reach(es)?|arrives?|comes?|leaves?|goes?)`, "nothing (works|runs|happens|starts)", `\w+s nothing`, `not (a|one|even (a|an|one))( single)? \w+ (gets?|reach(es)?|arrives?|comes?|leaves?|goes?|shows?)`, `ignor(es|ed|ing)`, `(holes?|gaps?) in`, `never (gets?|reach\w*|finish\w*|ends?|complet\w*|start\w*|arriv\w*|comes?)`, `no (pods?|logs?)`, `not even (an? |one )?logs?`,
	"where (is|are|did|have) (my|our|the|all)", "look into", "what is up", "what is going on", "wtf", "gone",
	"disappeared", "vanished", "expired", "acting up", `misbehav\w*`, "weird", "strange", "flaky", "flapping", "unstable",
	"degraded", `(is|are|looks?|all|everything|went|turned) red`, "hates? (me|us)", `falls? over`, `falling over`, "not happy", "unhappy", "on its knees", "knocked out", "melting", "choking",
	"too (many|much|few|high|low)", "no space", "(disk|volume|queue|memory) (is )?full", "out of (memory|disk|space|cpu|ram|pods|ips)", "what (should|do|can|could) (i|we) do( now)?$", "what now$",
) + `\b`)

var (
	listExpr = regexp.MustCompile(`^` + wordlist.AnyOf(
		"list", "show", "get", "what", "which", "display", "give", "print", "see", "find", "fetch", "how many",
		"count", "enumerate", "are there", "is there", "do we have", "view", "look up",
	) + `\b`)
	describeExpr = regexp.MustCompile(`^` + wordlist.AnyOf(
		"describe", "explain", "details", "tell", "inspect", "show", "info", "information", "get", "look at",
		"check", "view", "what is", "give", "status",
	) + `\b`)
)

// tables are the intents that a complaint does not have, whatever it names.
var tables = map[Intent]bool{Prices: true, Applications: true, Releases: true, NoProbes: true, Secrets: true, Keys: true, Users: true, External: true, Quotas: true, Capacity: true, Overview: true, Usage: true, Runbook: true}

var (
	// askExpr begins a question for a fact.
	askExpr = regexp.MustCompile(`^(who|whose|how (many|much|often|full)|is|are|do|does|did|can|could|has|have|any|all|explain|tell|runbooks?|quotas?|secrets?)\b`)
	// wrongExpr begins a question for what ails something.
	wrongExpr = regexp.MustCompile(`^(so |and |but )?what is (wrong|broken|the (matter|problem|issue|trouble)) with\b`)
	// stateExpr ends a question about whether something is in trouble.
	stateExpr = regexp.MustCompile(`\b(is|are) (it|they|this|that|something|anything) (really |actually |now |still )?(fail\w*|broken|down|wrong|bad|unhealthy|in trouble|a problem|the problem)$`)
)

// hypothesisExpr is a question whether a cause that somebody suspects is the one.
var hypothesisExpr = regexp.MustCompile(`^(so |and |but |maybe |perhaps )?((is|was) (it|this|that)|(could|can|might|may) (it|this|that) be|it is) (again |always |just |maybe |probably )?(a |an |the |our )?(\w+ )?` +
	`(dns|network\w*|firewalls?|storage|disks?|volumes?|nodes?|memory|cpu|quotas?|certificates?|certs?|tls|probes?|images?|registry|ingress|limits?|secrets?|configs?|policy|policies|webhooks?)( problem| issue| thing| trouble| again)?$`)

// negatedExpr is a sentence about what does not happen.
var negatedExpr = regexp.MustCompile(`\b(does|do|did|is|are|was|were|will|would|can|could|has|have) not\b`)

// intentOf returns the intent of a sentence that is not a request for a change.
func intentOf(s sentence, p place) Intent {
	why := whyExpr.MatchString(s.low) || stateExpr.MatchString(s.low)
	complains := wrongExpr.MatchString(s.low) || !listExpr.MatchString(s.low) && !askExpr.MatchString(s.low) && (badExpr.MatchString(s.low) || negatedExpr.MatchString(s.low))
	for _, r := range rules {
		if complains && (tables[r.intent] || stated[r.intent] && !headExpr.MatchString(s.low)) {
			continue // "web cannot read its secret" asks for no list of Secrets, "api is slow and restarts" for no table of restarts
		}
		if other := otherExprs[r.intent]; !why && r.expr.MatchString(s.low) && (other == nil || !other.MatchString(s.low)) {
			return r.intent
		}
	}
	switch {
	case why || badExpr.MatchString(s.low), lacksExpr.MatchString(s.low), hypothesisExpr.MatchString(s.low):
		return Diagnosis
	case listExpr.MatchString(s.low) && p.kind != "":
		return List
	case describeExpr.MatchString(s.low) && slices.ContainsFunc(p.mentions, func(m Mention) bool { return m.Sure }):
		return Describe
	case len(s.words) == 1 && p.kind != "":
		return List
	case negatedExpr.MatchString(s.low), !s.asks && len(s.words) >= 3 && slices.ContainsFunc(p.mentions, func(m Mention) bool { return m.Sure }):
		return Diagnosis // a statement about something is a complaint
	case len(s.words) <= 3 && len(p.mentions) > 0, len(s.words) <= 3 && p.namespace != "":
		return Diagnosis // "api?", "shop/web", "deployment api"
	}
	return Unclear
}
