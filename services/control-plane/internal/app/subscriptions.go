package app

import (
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit"
	"github.com/mlp-platform/platform/services/control-plane/internal/drift"
)

// Subscriptions lists the events that the control plane consumes.
var Subscriptions = []outbox.Subscription{
	{Consumer: audit.Consumer, Subjects: []string{audit.Subject}},
	{Consumer: DriftConsumer, Subjects: drift.Subjects},
}
