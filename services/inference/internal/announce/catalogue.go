package announce

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox"
)

// Events are all that this service publishes.
var Events = outbox.NewCatalogue(
	outbox.AuditDeclaration,
	declareEvent("deploy", "model_loaded", Loaded{}, "a replica serves this version from now on"),
	declareEvent("deploy", "load_failed", Loaded{}, "a replica could not load this version and keeps the versions it has"),
	declareEvent("deploy", "traffic_changed", TrafficChanged{}, "a model's traffic rules changed; rules and previous are percent by alias, empty without rules"),
	declareEvent("deploy", "shadow_changed", TrafficChanged{}, "a model's shadow rule changed (alias or percentage); rules and previous are percent by alias, empty without a rule"),
	declareEvent("drift", "status_changed", DriftStatus{}, "a model's drift has another status or overall level than at the last look"),
	declareEvent("drift", "baseline_set", DriftSet{}, "the newest predictions became the drift baseline"),
	declareEvent("drift", "reset", DriftSet{}, "the kept predictions of a model were deleted"),
)

func declareEvent(namespace, name string, data any, when string) outbox.Declaration {
	return outbox.Declaration{Namespace: namespace, Name: name, Data: data, When: when, Platform: true}
}

// Insert adds events to the transaction that they describe.
func Insert(ctx context.Context, tx pgx.Tx, events ...outbox.Event) error {
	if err := Events.Check(events...); err != nil {
		return err
	}
	return outbox.Insert(ctx, tx, events...)
}
