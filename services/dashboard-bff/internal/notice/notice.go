// Package notice turns events of the platform into what a person is told: one sentence, who caused it, and the page that
// it leads to. The inbox and the channels outside carry the same notices.
package notice

import (
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
)

// Kind is what a notice is about.
type Kind string

// The kinds; the inbox shows each as long as it has not ended.
const (
	Mention  Kind = "mention"
	Approval Kind = "approval"
	Alert    Kind = "alert"
)

// Type is what has happened; channels subscribe to types.
type Type string

// The types.
const (
	ApprovalRequested Type = "approval.requested"
	ApprovalDecided   Type = "approval.decided"
	AlertFiring       Type = "alert"
	Mentioned         Type = "mention"
)

// Types lists them, as the UI shows them.
var Types = []Type{ApprovalRequested, ApprovalDecided, AlertFiring, Mentioned}

// Subjects are the events that notices are made of.
var Subjects = []string{
	"platform.*.approval.created", "platform.*.approval.approved", "platform.*.approval.rejected", "platform.*.approval.expired",
	"platform.*.alert.firing", "platform.*.alert.resolved", "platform.*.event.mention",
}

// Notice is one event as people are told of it.
type Notice struct {
	EventID uuid.UUID
	Tenant  string
	At      time.Time
	Type    Type // empty: nothing to tell, the notice only ends others
	Kind    Kind
	Object  string // the comment, the approval record or the alert
	Author  string // the principal that caused it; empty: no person
	// Recipient is whom a mention names, in lower case.
	Recipient string
	Title     string
	Path      string // in the web UI
	Model     string // of an approval
	Severity  string // of an alert
	// Outcome ends the notices of the object: approved, rejected, expired or resolved.
	Outcome string
}

// approval is the data of the approval events; the control plane documents it in docs/events.md.
type approval struct {
	ID          string `json:"id"`
	Kind        string `json:"kind"`
	Model       string `json:"model"`
	RequestedBy string `json:"requested_by"`
	ResolvedBy  string `json:"resolved_by"`
	Reason      string `json:"reason"`
}

type alert struct {
	ID       string `json:"id"`
	Severity string `json:"severity"`
	Title    string `json:"title"`
}

type mention struct {
	User      string `json:"user"`
	Entity    string `json:"entity"`
	By        string `json:"by"`
	CommentID string `json:"comment_id"`
}

// Parse returns the notice of an event of Subjects. An error is a fault of the event: repeated, it fails again.
func Parse(e outbox.Envelope) (Notice, error) {
	n := Notice{EventID: e.ID, Tenant: e.Tenant, At: e.Time}
	switch e.Namespace() {
	case "approval":
		return n.ofApproval(e)
	case "alert":
		var a alert
		if err := e.Decode(&a); err != nil {
			return Notice{}, err
		}
		n.Kind, n.Object, n.Severity, n.Path = Alert, a.ID, a.Severity, "/alerts?id="+url.QueryEscape(a.ID)
		if e.Name() == "resolved" {
			n.Outcome = "resolved"
			return n, nil
		}
		n.Type, n.Title = AlertFiring, oneLine(a.Title)
		return n, nil
	default:
		var m mention
		if err := e.Decode(&m); err != nil {
			return Notice{}, err
		}
		kind, id, _ := strings.Cut(m.Entity, "/")
		n.Type, n.Kind, n.Object, n.Author, n.Recipient = Mentioned, Mention, m.CommentID, m.By, strings.ToLower(m.User)
		n.Title = oneLine(Name(m.By) + " mentions " + m.User + " in a comment on " + kind + " " + id)
		n.Path = pathOf(kind, id)
		return n, nil
	}
}

func (n Notice) ofApproval(e outbox.Envelope) (Notice, error) {
	var a approval
	if err := e.Decode(&a); err != nil {
		return Notice{}, err
	}
	what := "the training of "
	if a.Kind == "promotion" {
		what = "the promotion of "
	}
	n.Kind, n.Object, n.Model = Approval, a.ID, a.Model
	n.Path = "/approvals?id=" + url.QueryEscape(a.ID)
	if e.Name() == "created" {
		n.Type, n.Author, n.Title = ApprovalRequested, a.RequestedBy, oneLine(Name(a.RequestedBy)+" requests "+what+a.Model)
		return n, nil
	}
	n.Type, n.Outcome, n.Author = ApprovalDecided, e.Name(), a.ResolvedBy
	n.Path += "&status=" + e.Name()
	switch {
	case e.Name() == "expired":
		n.Title = "The request for " + what + a.Model + " expired"
	case a.ResolvedBy == "":
		n.Title = "The request for " + what + a.Model + " was " + e.Name()
	default:
		n.Title = Name(a.ResolvedBy) + " " + e.Name() + " " + what + a.Model
	}
	if a.Reason != "" {
		n.Title += ": " + a.Reason
	}
	n.Title = oneLine(n.Title)
	return n, nil
}

// pathOf returns the page of what people comment on.
func pathOf(kind, id string) string {
	switch kind {
	case "model":
		return "/models/" + url.PathEscape(id) + "?tab=discussion"
	case "alert":
		return "/alerts?id=" + url.QueryEscape(id)
	case "run":
		return "/runs/" + url.PathEscape(id)
	case "approval":
		return "/approvals?id=" + url.QueryEscape(id)
	}
	return "/search?q=" + url.QueryEscape(id)
}

// Name returns a principal as people call it: <provider>:<subject> without the provider. The platform's own parts are
// system:<part>.
func Name(principal string) string {
	provider, subject, ok := strings.Cut(principal, ":")
	switch {
	case principal == "" || provider == "system":
		return "The platform"
	case ok && subject != "":
		return subject
	}
	return principal
}

// maxTitle limits a title, in characters: a reason may be a page.
const maxTitle = 300

// oneLine makes a text safe as the subject of a mail and as one line of a list.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' }), " ")
	if runes := []rune(text); len(runes) > maxTitle {
		text = string(runes[:maxTitle-1]) + "…"
	}
	return text
}
