package copilot

import "strings"

// commandRules describe the read commands of a program.
type commandRules struct {
	verbs    []readVerb
	switches []string // options without a value
	options  []string // options with one
	formats  []string // values of -o
}

// readVerb begins a command that reads.
type readVerb struct {
	words []string
	most  int // arguments after it; -1: any number
}

func readVerbs(most int, lines ...string) []readVerb {
	verbs := make([]readVerb, len(lines))
	for i, line := range lines {
		verbs[i] = readVerb{strings.Fields(line), most}
	}
	return verbs
}

// readRules lists read-only commands. Left out on purpose: kubectl get --raw, which can reach any proxy, options by
// which a command acts as another user or on another server, and mlp commands that store what they read.
var readRules = map[string]commandRules{
	"kubectl": {
		verbs: append(readVerbs(-1,
			"get", "describe", "logs", "top node", "top nodes", "top pod", "top pods", "explain", "events",
			"rollout status", "rollout history", "auth can-i"),
			readVerbs(0, "version", "cluster-info", "api-resources", "api-versions", "config current-context", "config get-contexts")...),
		switches: []string{
			"-A", "--all-namespaces", "--show-labels", "--no-headers", "--previous", "-p", "--timestamps", "--all-containers",
			"--containers", "--prefix", "--client", "--recursive", "--namespaced", "-w", "--watch", "--follow", "--list",
			"--show-events", "--ignore-not-found",
		},
		options: []string{
			"-n", "--namespace", "-l", "--selector", "--field-selector", "--sort-by", "-c", "--container", "--tail", "--since",
			"-o", "--output", "--for", "--types", "--revision", "--timeout", "--context", "--chunk-size", "--limit-bytes",
		},
		formats: []string{"json", "yaml", "wide", "name"},
	},
	"mlp": {
		verbs: append(readVerbs(-1,
			"models list", "models info", "models diff", "models lineage", "models cost", "drift status", "approvals list",
			"audit", "pipeline list", "pipeline validate", "modelrepo status", "modelrepo list", "bus status", "stack ps", "help"),
			readVerbs(0, "status", "version", "config show", "config contexts")...),
		switches: []string{"--json", "--all", "--plot", "--watch", "--quiet", "-q", "--verbose", "-v"},
		options:  []string{"--output", "-o", "--context", "-c", "--interval", "--last", "--model", "-m", "--alias", "--limit"},
		formats:  []string{"table", "json", "yaml", "csv"},
	},
}
