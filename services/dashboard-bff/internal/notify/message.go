package notify

import (
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notice"
)

// message is what a channel carries: the body of a webhook, and the source of the texts for chats and mail.
type message struct {
	Type      notice.Type `json:"type"`
	Timestamp time.Time   `json:"timestamp"`
	Data      messageData `json:"data"`
}

type messageData struct {
	EventID  uuid.UUID   `json:"event_id"`
	Tenant   string      `json:"tenant"`
	Title    string      `json:"title"`
	URL      string      `json:"url"`
	Kind     notice.Kind `json:"kind,omitempty"`
	Object   string      `json:"object,omitempty"`
	Actor    string      `json:"actor,omitempty"`
	Model    string      `json:"model,omitempty"`
	Severity string      `json:"severity,omitempty"`
	Outcome  string      `json:"outcome,omitempty"`
}

// newMessage returns the message of a notice; base is the dashboard's address.
func newMessage(n notice.Notice, base string) message {
	return message{Type: n.Type, Timestamp: n.At.UTC(), Data: messageData{
		EventID: n.EventID, Tenant: n.Tenant, Title: titleOf(n), URL: base + n.Path, Kind: n.Kind, Object: n.Object, Actor: n.Author,
		Model: n.Model, Severity: n.Severity, Outcome: n.Outcome,
	}}
}

// titleOf returns the sentence of a notice; an alert has its severity before it.
func titleOf(n notice.Notice) string {
	if n.Kind == notice.Alert {
		return "Alert (" + n.Severity + "): " + n.Title
	}
	return n.Title
}

// testType is the type of the message that tests a channel; no channel subscribes to it.
const testType notice.Type = "test"
