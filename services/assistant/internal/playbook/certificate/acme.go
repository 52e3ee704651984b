package certificate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// explainOrder explains an order that failed, or a challenge of it that fails or waits for something.
func (x *Index) explainOrder(why *reason, order *certmanager.Order) (told bool) {
	why.touches = append(why.touches, acmeRef("Order", order.Namespace, order.Name))
	challenges := x.challenges[engine.NameOf(order)]
	at := slices.IndexFunc(challenges, func(c *certmanager.Challenge) bool { return c.Status.HasFailed() })
	if at < 0 {
		at = slices.IndexFunc(challenges, func(c *certmanager.Challenge) bool {
			return c.Status.State != "valid" && c.Status.Reason != "" && x.Taken.Sub(c.CreationTimestamp.Time) > patience
		})
	}
	switch {
	case isRateLimit(order.Status.Reason):
		explainRateLimit(why)
	case at >= 0:
		explainChallenge(why, challenges[at])
		return true
	case order.Status.HasFailed():
		why.what = fmt.Sprintf("its order at the ACME server is %s", engine.QuoteCode(order.Status.State))
		why.help = "Correct what the order's reason names. cert-manager retries automatically, first after an hour and then at growing intervals."
	default:
		return false
	}
	why.evidence = append(why.evidence, stateText("Order", order.Name, "", order.Status))
	return true
}

func acmeRef(kind, namespace, name string) operation.Ref {
	return operation.Ref{Group: certmanager.ACMEGroup, Version: "v1", Kind: kind, Namespace: namespace, Name: name}
}

func stateText(kind, name, what string, s certmanager.State) string {
	text := fmt.Sprintf("%s %s%s is %s", kind, engine.QuoteCode(name), what, engine.QuoteCode(cmp.Or(s.State, "not begun")))
	if s.Reason != "" {
		text += ": " + engine.QuoteLine(s.Reason)
	}
	return text + "."
}

// isRateLimit reports whether a message means that an ACME server has reached a rate limit.
func isRateLimit(message string) bool {
	low := strings.ToLower(message)
	return strings.Contains(low, "ratelimited") || strings.Contains(low, "rate limit") || strings.HasPrefix(low, "429 ") || strings.Contains(low, ": 429 ") || strings.Contains(low, "too many certificates")
}

func explainRateLimit(why *reason) {
	why.what = "the ACME server refuses it for now, since a rate limit is used up"
	why.help = "Wait until the time that the server names, and do not create the certificate anew: each attempt counts. Try out with the server's staging address."
}

func explainChallenge(why *reason, c *certmanager.Challenge) {
	why.touches = append(why.touches, acmeRef("Challenge", c.Namespace, c.Name))
	state := "waits"
	if c.Status.HasFailed() {
		state = "failed"
	}
	host := engine.QuoteCode(c.Spec.DNSName)
	why.what = fmt.Sprintf("the %s challenge for %s %s", engine.QuoteCode(c.Spec.Type), host, state)
	why.help = "Correct what the challenge's reason names."
	for _, hint := range challengeHints {
		if (hint.kind == "" || hint.kind == c.Spec.Type) && slices.ContainsFunc(hint.words, func(w string) bool { return strings.Contains(strings.ToLower(c.Status.Reason), w) }) {
			why.what += ", since " + fmt.Sprintf(hint.what, host)
			why.help = fmt.Sprintf(hint.help, host)
			break
		}
	}
	if isRateLimit(c.Status.Reason) {
		explainRateLimit(why)
	}
	why.evidence = append(why.evidence, stateText("Challenge", c.Name, fmt.Sprintf(" (%s for %s)", engine.QuoteCode(c.Spec.Type), host), c.Status))
}

// challengeHints map phrases in the reason of a challenge to their meaning and a remedy. The first match counts; each
// text has a %s for the host.
var challengeHints = []struct {
	kind       string // empty: any
	words      []string
	what, help string
}{
	{"", []string{"caa"}, "the CAA records of the domain do not let this authority issue for %s", "Allow the authority in the CAA records of the domain of %s."},
	{"DNS-01", []string{"not yet propagated", "nxdomain", "no txt record", "incorrect txt record"}, "its TXT record is not seen for %s",
		"Look whether the TXT record `_acme-challenge` of %s is there, and whether the zone that the solver writes is the one that the public name servers serve."},
	{"DNS-01", []string{"403", "401", "denied", "unauthorized", "not authorized", "forbidden", "credential", "authentication", "secret"}, "the DNS provider does not let the solver write the record of %s",
		"Check the credentials of the issuer's DNS-01 solver and their rights to the zone of %s."},
	{"DNS-01", []string{"zone"}, "the solver finds no zone for %s", "Check the zone that the issuer's DNS-01 solver is to use for %s."},
	{"HTTP-01", []string{"no such host", "nxdomain", "servfail", "no valid ip", "dns problem"}, "the name %s has no address", "Create the DNS record of %s, with the address of the ingress or gateway."},
	{"HTTP-01", []string{"wrong status code", "invalid response", "did not get expected response"}, "another server answers at port 80 of %s",
		"Check what serves %s: the issuer's solver must use an ingress class that is served there, the DNS record must point there, and nothing in front of it may redirect or require a login."},
	{"HTTP-01", []string{"connection refused", "timeout", "deadline exceeded", "no route to host", "connection reset"}, "nothing answers at port 80 of %s",
		"Check that port 80 of %s is open from the internet and from the cluster itself, and leads to the ingress or gateway of the issuer's solver."},
}
