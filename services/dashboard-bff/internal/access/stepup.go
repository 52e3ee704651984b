package access

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// The actions for which DASHBOARD_STEP_UP_ACTIONS may ask a step-up.
const (
	ConfigSecret      = "config.secret"
	ProxyControlPlane = "proxy.control_plane"
	ProxyTracker      = "proxy.tracker"
	FlagWrite         = "flag.write"
	ModelPromote      = "model.promote"
	AssistantDecide   = "assistant.decide"
)

// DefaultStepUpActions returns the actions that need a step-up by default.
func DefaultStepUpActions() []string {
	return []string{ConfigSecret, ProxyControlPlane, ProxyTracker, FlagWrite, ModelPromote, AssistantDecide}
}

// CheckStepUpActions refuses an action that nothing asks for: a typing mistake would leave the real one open.
func CheckStepUpActions(actions []string) error {
	for _, a := range actions {
		if !slices.Contains(DefaultStepUpActions(), a) {
			return fmt.Errorf("DASHBOARD_STEP_UP_ACTIONS: %q is unknown; there are %s", a, strings.Join(DefaultStepUpActions(), ", "))
		}
	}
	return nil
}

// clockSkew is how far the clock of a provider may be ahead of ours.
const clockSkew = 5 * time.Minute

// demand is a step-up that a caller's session must have made.
type demand struct {
	acrValues []string
	maxAge    time.Duration
	loginURL  string
}

// CheckStepUp returns the 401 of RFC 9470 if the action needs a stronger or fresher sign-in than the caller's, else
// nil.
func (g *Guard) CheckStepUp(who caller.Caller, action string) error {
	if !g.stepUp[action] {
		return nil
	}
	want, asked := g.demandOf(who)
	if !asked || want.metBy(who, g.cfg.Now()) {
		return nil
	}
	return want.problem(who, action)
}

func (g *Guard) demandOf(who caller.Caller) (demand, bool) {
	if who.Method == caller.Password {
		// A password has no levels: what helps is to enter it again.
		return demand{maxAge: g.cfg.StepUpMaxAge}, g.cfg.EnforceStepUp
	}
	if g.cfg.Federation == nil {
		return demand{}, false // unreachable: the other methods need federation
	}
	acrValues, maxAge, loginURL, required := g.cfg.Federation.StepUp(who.Provider)
	return demand{acrValues, maxAge, loginURL}, required
}

// metBy fails for a missing claim: without acr there is no level, and without auth_time the sign-in is from the year
// 1.
func (d demand) metBy(who caller.Caller, now time.Time) bool {
	if len(d.acrValues) > 0 && (who.ACR == "" || !slices.Contains(d.acrValues, who.ACR)) {
		return false
	}
	age := now.Sub(who.AuthTime)
	return age <= d.maxAge && age >= -clockSkew
}

func (d demand) problem(who caller.Caller, action string) error {
	seconds := int64(d.maxAge / time.Second)
	members := map[string]any{"acr_values": append([]string{}, d.acrValues...), "max_age": seconds, "action": action}
	advice := "enter the password again"
	if who.Provider != "" {
		members["provider"] = who.Provider
		advice = "sign in again at " + who.Provider
	}
	if d.loginURL != "" {
		members["login_url"] = d.loginURL
	}
	header := `Bearer error="insufficient_user_authentication"`
	if len(d.acrValues) > 0 {
		header += fmt.Sprintf(`, acr_values="%s"`, quoteParameter(strings.Join(d.acrValues, " ")))
	}
	header += fmt.Sprintf(", max_age=%d", seconds)
	return fault.StepUpRequired.Errorf("%s needs a stronger or fresher sign-in, at most %d seconds old; %s, then repeat it. Nothing has changed yet.", action, seconds, advice).
		With(members).WithHeader("WWW-Authenticate", header)
}

// quoteParameter escapes what ends a quoted string of RFC 9110, and drops what no header may hold.
func quoteParameter(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text))
}
