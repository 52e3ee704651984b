package question

import (
	"regexp"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Symptom is the visible sign of a problem.
type Symptom int

// The symptoms.
const (
	Crash Symptom = iota + 1
	Pending
	NotStarting
	Image
	Traffic
	Terminating
	Scaling
	Drain
	Init
	Access
	Names
	Job
	Rollout
	Node
	Volume
	Memory
	Config
	Probe
	Quota
	Webhook
	Slow
	Version // an old one runs, or not everywhere
	Lost    // pods that were there, or are missing somewhere
	Certificate
	Address // one from outside that a Service waits for
)

// symptoms are looked for in order; a sentence may name several.
var symptoms = []struct {
	symptom Symptom
	expr    *regexp.Regexp
}{
	{Crash, regexp.MustCompile(`\b` + wordlist.AnyOf(
		`crash\w*`, `restart\w*`, "die", "dies", "died", "dying", `exit\w*`, "killed", "back ?off", `loop\w*`,
		`panic\w*`, "falls? over",
	) + `\b`)},
	{Memory, regexp.MustCompile(`\b(oom\w*|memory|ram|mem)\b`)},
	{Pending, regexp.MustCompile(`\b(pending|schedul\w*|unschedulable|placed)\b`)},
	{NotStarting, regexp.MustCompile(`\b` + wordlist.AnyOf(
		`not (start\w*|come up|coming up|run\w*|up|created?)`, "starting", "start", "where (is|are)", "no pods",
		"missing pods", "containercreating", "createcontainererror", "gone", "disappeared",
	) + `\b`)},
	{Image, regexp.MustCompile(`\b(images?|pull\w*|imagepull\w*|errimage\w*|registry|tag)\b`)},
	{Traffic, regexp.MustCompile(`\b` + wordlist.AnyOf(
		"traffic", `connect\w*`, "50[234]", "5xx", "timeouts?", "times? out", "timing out", "unreachable",
		`reach\w*`, "refused", "endpoints?", `respond\w*`, "response", `answer\w*`, "unavailable", "selector",
		"service", "ingress", `requests? fail\w*`, "404", `(http|grpc|tls)routes?`, "gatewayclass",
		`(route|gateway)\w*\b.*\battach\w*`, `attach\w*\b.*\b(route|gateway)\w*`,
	) + `\b`)},
	{Terminating, regexp.MustCompile(`\b` + wordlist.AnyOf(
		`terminat\w*`, "deleting", `finali[sz]er\w*`, `not (be )?delet\w*`, "stuck deleting", "not go away",
	) + `\b`)},
	{Scaling, regexp.MustCompile(`\b(scal\w*|hpa|autoscal\w*)\b`)},
	{Drain, regexp.MustCompile(`\b(drain\w*|evict\w*|pdb|disruption)\b`)},
	{Init, regexp.MustCompile(`\binit\b|\binit:\S*|\bpodinitializing\b`)},
	{Access, regexp.MustCompile(`\b(401|403|forbidden|permissions?|rbac|denied|unauthori[sz]ed|allowed)\b`)},
	{Names, regexp.MustCompile(`\b(dns|resolv\w*|lookup|no such host)\b`)},
	{Job, regexp.MustCompile(`\b(jobs?|cron\w*|schedule|nightly|backup\w*)\b`)},
	{Rollout, regexp.MustCompile(`\b` + wordlist.AnyOf(
		"rollout", "roll(ed|ing)? out", "deploy(ing|ment|s)? .*stuck", "release", `progress\w*`, "new version",
		"update", `sync(s|ed|ing)?`, "out ?of ?sync", "helm", "argo ?cd",
	) + `\b`)},
	{Node, regexp.MustCompile(`\b(nodes?|kubelet|notready|disk pressure|machine)\b`)},
	{Volume, regexp.MustCompile(`\b(volumes?|pvcs?|mount\w*|storage|unbound|claims?|disk)\b`)},
	{Config, regexp.MustCompile(`\b(config\w*|env\w*|variables?|secrets?|createcontainerconfigerror|keys?)\b`)},
	{Probe, regexp.MustCompile(`\b(probes?|liveness|readiness|not ready|unready)\b`)},
	{Quota, regexp.MustCompile(`\bquota\b`)},
	{Slow, regexp.MustCompile(`\b(slow\w*|sluggish|lag|lags|laggy|lagging|latency|takes (too |so )?long|throttled|unresponsive)\b`)},
	{Version, regexp.MustCompile(`\b(old|new|latest|previous|wrong) (versions?|images?|revisions?)\b|\boutdated\b|\bnot updated\b`)},
	{Lost, regexp.MustCompile(`\b(lost|missing (on|from)|disappear\w*|vanish\w*|preempt\w*|(every|all|each|which|some) nodes?|where did)\b`)},
	{Certificate, regexp.MustCompile(`\b(certificates?|certs?|tls|ssl|x509|handshakes?|not secure|insecure|(cluster)?issuers?|certificaterequests?)\b`)},
	{Address, regexp.MustCompile(`\b(external|public) (ip|address)\w*|\bload ?balancers?\b|\bno (ip|address)\b`)},
	{Webhook, regexp.MustCompile(`\b(webhooks?|webhookconfiguration|admission)\b`)},
}

func symptomsOf(low string) []Symptom {
	var found []Symptom
	for _, s := range symptoms {
		if s.expr.MatchString(low) {
			found = append(found, s.symptom)
		}
	}
	return found
}
