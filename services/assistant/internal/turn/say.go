package turn

import (
	"fmt"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// maxDiff limits the diff of a prompt, in code points; the action document has all of it.
const maxDiff = 3000

// maxAffected limits the objects that a prompt names.
const maxAffected = 20

const (
	nothingWaits = "Nothing is waiting for a decision."
	emptyHint    = "Ask about the cluster, for example: what is wrong in namespace shop?"
	tooMany      = "Ten changes of this session wait for a decision already. Decide those first."
	manyWrites   = "\n\nFive changes were made in this answer; ask again for more."
)

func newParagraph(text string) string { return text + "\n\n" }

// maxContext limits the name of a client's context in a sentence, in code points.
const maxContext = 100

// notice is the last line of every answer of a session: which cluster it is about, if there may be several.
func (s *Service) notice(cluster string) string {
	if cluster != "" && s.Notice == "" {
		return "Cluster: `" + cluster + "`."
	}
	return s.Notice
}

// inCluster names the cluster of an action, if there may be several.
func inCluster(a action.Action) string {
	if a.Cluster == "" {
		return ""
	}
	return " in cluster `" + a.Cluster + "`"
}

// commandText returns an action's command for use in a sentence.
func commandText(a action.Action) string { return "`" + a.Command + "`" + inCluster(a) }

// foreign describes the parts of a client's context that are not about the session's cluster and have no
// effect.
func (s *Service) foreign(c chat.Context, cluster string) string {
	var said []string
	if ours := s.Clusters.Display(cluster); c.KubeContext != "" && c.KubeContext != ours {
		name, _ := shortenText(strings.ReplaceAll(c.KubeContext, "`", "'"), maxContext)
		said = append(said, fmt.Sprintf("Note: your client's context is `%s`; answers are about the cluster `%s`, and nothing was switched.", name, ours))
	}
	for _, key := range c.Unusable {
		said = append(said, "Note: the "+key+" of your client's context cannot be one; it is not used.")
	}
	return strings.Join(said, "\n")
}

// withheldText answers a word that decides nothing.
func withheldText(noDecisions bool) string {
	if noDecisions {
		return newParagraph("Nothing was decided: no word approves, denies or approves in advance in this chat. Each change is decided on its card, or with `POST /v1/sessions/{id}/actions/{action_id}`.")
	}
	return newParagraph("Nothing was decided: a word decides only as the whole message, without a page below it.")
}

// howToDecide tells a person how to decide an action.
func howToDecide(a action.Action, several, noDecisions bool) string {
	switch {
	case noDecisions:
		return fmt.Sprintf("Approve or deny it with the buttons of its card, or with `POST /v1/sessions/%s/actions/%s`", a.Session, a.ID)
	case several:
		return fmt.Sprintf("Answer `approve %s` or `deny %s`", a.ID, a.ID)
	}
	return "Answer `yes` or `no`"
}

func standText(held bool) string {
	if !held {
		return "Changes cannot be approved beforehand here; each is decided separately.\n\n"
	}
	return "Your later changes in this session are approved, but for those that always ask. `auto-approve off` ends that.\n\n"
}

func listText(waiting []action.Action) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d changes wait; nothing was decided. Choose one:\n", len(waiting))
	for _, a := range waiting {
		fmt.Fprintf(&b, "\n- `approve %s`: %s (risk %s)", a.ID, commandText(a), a.Risk)
	}
	return b.String()
}

func promptText(a action.Action, noDecisions bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This change%s waits for approval:\n\n```\n%s\n```\n\nRisk: %s.", inCluster(a), a.Command, a.Risk)
	if a.AlwaysConfirm {
		b.WriteString(" " + whyAlways(a.Confirms))
	}
	for _, n := range a.Notes {
		b.WriteString(" " + n)
	}
	if affected := affectedOf(a); len(affected) > 0 {
		fmt.Fprintf(&b, "\n\nAffected (%d):", len(affected))
		for i, ref := range affected {
			if i == maxAffected {
				fmt.Fprintf(&b, "\n- and %d more", len(affected)-i)
				break
			}
			b.WriteString("\n- " + ref.String())
		}
	}
	if a.Diff != "" {
		diff, cut := shortenText(a.Diff, maxDiff)
		b.WriteString("\n\n```diff\n" + diff + "\n```")
		if cut {
			b.WriteString("\n\nThe diff is cut; the action document has all of it.")
		}
	}
	b.WriteString("\n\n" + howToDecide(a, false, noDecisions))
	if !noDecisions {
		fmt.Fprintf(&b, ", or `approve %s`", a.ID)
	}
	fmt.Fprintf(&b, ", before %s.", a.ExpiresAt.UTC().Format(time.RFC3339))
	return b.String()
}

// reasons are the reasons why an action always needs a decision.
var reasons = map[guard.Confirm]string{
	guard.DeletesCascadingKind: "it deletes what takes other things with it", guard.RemovesMany: "it removes several objects", guard.Drains: "it drains a node",
	guard.TaintsNoExecute: "the taint puts pods off the node", guard.ChangesImageOrResources: "it changes a container's image or resources",
	guard.ChangesProgram:  "it changes the program that runs or where its traffic goes",
	guard.ReplacesByForce: "it deletes the object and makes it anew", guard.Prunes: "it deletes what the manifest no longer has", guard.RemovesFinalizer: "it takes a finalizer away",
	guard.ChangesOwner: "the object ends when its new owner does", guard.GainsCredentials: "its pods get a Secret or token that they did not have",
	guard.GainsPrivilege: "it grants someone more rights", guard.UntrustedValue: "a value in it comes from the cluster's own text and not from you", guard.NoDryRun: "the server cannot rehearse it",
	guard.ModelChoice: "a language model or another program chose part of it, and not you",
}

// whyAlways returns a sentence on why an action always needs a decision.
func whyAlways(confirms []string) string {
	var why []string
	for _, c := range confirms {
		if r := reasons[guard.Confirm(c)]; r != "" {
			why = append(why, r)
		}
	}
	if len(why) == 0 {
		return "It always asks."
	}
	return "It always asks: " + strings.Join(why, "; ") + "."
}

func reminderText(a action.Action, n int, noDecisions bool) string {
	how := howToDecide(a, n > 1, noDecisions)
	if n > 1 {
		return fmt.Sprintf("%d changes still wait for a decision; the oldest is %s. %s.", n, commandText(a), how)
	}
	return fmt.Sprintf("Still waiting for a decision: %s. %s.", commandText(a), how)
}

func resultText(a action.Action) string {
	var head string
	switch a.State {
	case action.Succeeded:
		head = "Done: " + commandText(a) + "."
	case action.Unknown:
		head = "Outcome unknown: " + commandText(a) + "."
	case action.Executing:
		return "Another server is carrying out " + commandText(a) + "; its result is not known yet."
	default:
		head = "Failed: " + commandText(a) + "."
	}
	for _, s := range []string{a.Result, a.Verification} {
		if s != "" {
			head += " " + s
		}
	}
	return head
}

func affectedOf(a action.Action) []operation.Ref {
	var out []operation.Ref
	for _, e := range a.Operations {
		out = append(out, e.Affected...)
	}
	return out
}

func shortenText(s string, limit int) (string, bool) {
	n := 0
	for i := range s {
		if n == limit {
			return s[:i], true
		}
		n++
	}
	return s, false
}
