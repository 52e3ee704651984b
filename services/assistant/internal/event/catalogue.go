package event

import "github.com/mlp-platform/platform/libs/outbox"

// Declared lists all events that this service publishes; the store refuses to write any other.
var Declared = outbox.NewCatalogue(
	outbox.AuditDeclaration,

	declareEvent("turn_finished", Turn{}, "an answer has ended; outcome is its result"),
	declareEvent("action_proposed", Action{}, "a write waits for a decision, or was approved beforehand"),
	declareEvent("action_decided", Action{}, "a write was approved or denied, expired, or is stale since its target changed"),
	declareEvent("action_executed", Action{}, "an approved write was carried out, failed, or ended with an unknown outcome"),
	declareEvent("action_refused", Action{}, "the caller was not allowed to make the decision"),
	declareEvent("tool_called", ToolCall{}, "a tool was called over the Model Context Protocol: one of the assistant's by a program, or one of another server by the assistant"),
	declareEvent("alert_received", Alert{}, "an alert manager's notification was received; outcome is its result"),
	declareEvent("access_denied", Access{}, "a request had no acceptable key, or its caller lacks permission for it"),
	declareEvent("demo_key_minted", DemoKey{}, "an admin made a demo key"),
)

func declareEvent(name string, data any, when string) outbox.Declaration {
	return outbox.Declaration{Namespace: Namespace, Name: name, Data: data, When: when, Platform: true}
}
