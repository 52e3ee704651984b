// Package alert takes in the notifications of an Alertmanager and investigates each group, by reading alone.
//
//	POST /v1/alerts ──▶ group and notification, in one transaction ──▶ 202
//	                        │
//	                        └──▶ a worker of any replica, by lease, one per session in order ──▶ a turn
//
// What a notification says once more joins its group and begins nothing. Alerts that differ add a turn; so does the end of
// all alerts, without an investigation. The session is shared: everybody may read it, and who first asks in it owns it.
//
// The turn carries the notification's id. A worker that dies leaves the notification behind: the worker that takes it
// over finds the turn by that id, and creates another only if that one was cut short.
//
// An alert is text that anybody who may label or log something can have written. It names an object only where the cluster
// has one of that kind and name; everything else of it is quoted, redacted, and never part of a question.
package alert
