package policy

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// denial is a request that the API server refused a service account. It was read from a log, which may be forged: every
// member has passed a closed pattern.
type denial struct {
	account     engine.Name
	verb        string
	group       string // empty: core
	resource    string
	subresource string // may be empty
	name        string // of the object; empty: all, or unknown
	namespace   string // empty: cluster scope
}

// The server's own wording. Only plain verbs count: no program needs the right to bind, escalate or impersonate because
// of a line in a log. Lengths are checked afterwards, since counted repetitions make an expression slow.
const (
	namePart = `[a-z0-9.-]+`
	verbPart = `get|list|watch|create|update|patch|delete|deletecollection`
)

// forbiddenExprs match the text plain, and as a string in JSON.
var forbiddenExprs = []*regexp.Regexp{forbiddenExpr(`"`), forbiddenExpr(`\\"`)}

func forbiddenExpr(quote string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(
		`(?:Q(`+namePart+`)Q is forbidden: )?User Qsystem:serviceaccount:(`+namePart+`):(`+namePart+`)Q cannot (`+verbPart+`) resource Q(`+namePart+`)(?:/(`+namePart+`))?Q in API group Q(|`+namePart+`)Q (?:in the namespace Q(`+namePart+`)Q|at the cluster scope)`,
		"Q", quote))
}

// findDenials finds the refusals of the API server in a log, each once, in order.
func findDenials(log string) []denial {
	var all []denial
	for line := range strings.Lines(log) {
		line = line[:min(len(line), engine.LongestLine)]
		if !strings.Contains(line, "system:serviceaccount:") {
			continue
		}
		for _, expr := range forbiddenExprs {
			for _, m := range expr.FindAllStringSubmatch(line, engine.MostDenials) {
				d := denial{
					name: m[1], account: engine.Name{Namespace: m[2], Name: m[3]}, verb: m[4], resource: m[5], subresource: m[6],
					group: m[7], namespace: m[8],
				}
				if d.valid() {
					all = append(all, d)
				}
			}
		}
	}
	slices.SortFunc(all, denial.compare)
	all = slices.Compact(all)
	return all[:min(len(all), engine.MostDenials)]
}

// valid reports whether every member has a possible value.
func (d denial) valid() bool {
	for _, label := range []string{d.account.Namespace, d.resource, cmp.Or(d.subresource, "x"), cmp.Or(d.namespace, "x")} {
		if len(validation.IsDNS1123Label(label)) > 0 {
			return false
		}
	}
	for _, domain := range []string{d.account.Name, cmp.Or(d.group, "x"), cmp.Or(d.name, "x")} {
		if len(validation.IsDNS1123Subdomain(domain)) > 0 {
			return false
		}
	}
	return true
}

func (d denial) compare(o denial) int {
	return cmp.Or(
		cmp.Compare(d.account.String(), o.account.String()), cmp.Compare(d.namespace, o.namespace), cmp.Compare(d.group, o.group),
		cmp.Compare(d.full(), o.full()), cmp.Compare(d.verb, o.verb), cmp.Compare(d.name, o.name),
	)
}

// full returns the resource as a rule writes it.
func (d denial) full() string {
	if d.subresource == "" {
		return d.resource
	}
	return d.resource + "/" + d.subresource
}

// message returns the message that the denial was parsed from, without its beginning.
func (d denial) message() string {
	text := `User "system:serviceaccount:` + d.account.Namespace + ":" + d.account.Name + `" cannot ` + d.verb + ` resource "` + d.full() + `" in API group "` + d.group + `" `
	if d.namespace == "" {
		return text + "at the cluster scope"
	}
	return text + `in the namespace "` + d.namespace + `"`
}
