package playbook

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// denial is what the API server refused a service account. It was read from a log, which
// may be forged: every member has passed a closed pattern.
type denial struct {
	account     name
	verb        string
	group       string // empty: core
	resource    string
	subresource string // may be empty
	name        string // of the object; empty: all, or not said
	namespace   string // empty: cluster scope
}

// Bounds on what is read of one log.
const (
	mostDenials = 20
	longestLine = 4 << 10
)

// The server's own words. Only plain verbs count: no program needs to be given the right
// to bind, escalate or impersonate because of a line in a log.
const (
	labelPart  = `[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?`
	domainPart = `[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?`
	verbPart   = `get|list|watch|create|update|patch|delete|deletecollection`
)

// forbiddenExprs read the text plain, and as a string of JSON.
var forbiddenExprs = []*regexp.Regexp{forbiddenExpr(`"`), forbiddenExpr(`\\"`)}

func forbiddenExpr(quote string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(
		`(?:Q(`+domainPart+`)Q is forbidden: )?\bUser Qsystem:serviceaccount:(`+labelPart+`):(`+domainPart+`)Q cannot (`+verbPart+`) resource Q(`+labelPart+`)(?:/(`+labelPart+`))?Q in API group Q(|`+domainPart+`)Q (?:in the namespace Q(`+labelPart+`)Q|at the cluster scope)`,
		"Q", quote))
}

// denials finds what a log says the API server refused, each once, in order.
func denials(log string) []denial {
	var all []denial
	for line := range strings.Lines(log) {
		line = line[:min(len(line), longestLine)]
		if !strings.Contains(line, "system:serviceaccount:") {
			continue
		}
		for _, expr := range forbiddenExprs {
			for _, m := range expr.FindAllStringSubmatch(line, mostDenials) {
				all = append(all, denial{
					name: m[1], account: name{Namespace: m[2], Name: m[3]}, verb: m[4], resource: m[5], subresource: m[6],
					group: m[7], namespace: m[8],
				})
			}
		}
	}
	slices.SortFunc(all, denial.compare)
	all = slices.Compact(all)
	return all[:min(len(all), mostDenials)]
}

func (d denial) compare(o denial) int {
	return cmp.Or(
		cmp.Compare(d.account.String(), o.account.String()), cmp.Compare(d.namespace, o.namespace), cmp.Compare(d.group, o.group),
		cmp.Compare(d.full(), o.full()), cmp.Compare(d.verb, o.verb), cmp.Compare(d.name, o.name),
	)
}

// full is the resource as a rule writes it.
func (d denial) full() string {
	if d.subresource == "" {
		return d.resource
	}
	return d.resource + "/" + d.subresource
}

// message is the sentence that the denial was read from, less its start.
func (d denial) message() string {
	text := `User "system:serviceaccount:` + d.account.Namespace + ":" + d.account.Name + `" cannot ` + d.verb + ` resource "` + d.full() + `" in API group "` + d.group + `" `
	if d.namespace == "" {
		return text + "at the cluster scope"
	}
	return text + `in the namespace "` + d.namespace + `"`
}
