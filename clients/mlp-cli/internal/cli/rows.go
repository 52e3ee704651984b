package cli

import (
	"time"

	"github.com/mlp-platform/platform/clients/go/controlplane"
)

// Rows of documents: the service's record, and beside it the keys that the table's columns promise to scripts.

type costRow struct {
	controlplane.Cost
	Recorded time.Time `json:"recorded"`
}

type autoRetrainRow struct {
	controlplane.AutoRetrain
	Dataset       *string    `json:"dataset"`
	Cooldown      int32      `json:"cooldown_s"`
	LastTriggered *time.Time `json:"last_triggered"`
}

type pushRow struct {
	controlplane.PushEvent
	Number int64     `json:"number"`
	Commit string    `json:"commit"`
	Time   time.Time `json:"time"`
}

type freshnessRow struct {
	controlplane.Freshness
	Model        string  `json:"model"`
	LatestCommit *string `json:"latest_commit"`
	TrainedFrom  *string `json:"trained_from"`
}

type policyRow struct {
	controlplane.Policy
	Op   controlplane.Operator `json:"op"`
	From string                `json:"from"`
	To   string                `json:"to"`
}

// approvalRow adds to a record how long ago it was requested, in seconds.
type approvalRow struct {
	listedApproval
	Model   string `json:"model"`
	Commit  string `json:"commit"`
	Message string `json:"message"`
	Age     int64  `json:"age"`
}

// mapRows converts a list to the rows of a document.
func mapRows[T, R any](list []T, row func(T) R) []R {
	rows := make([]R, len(list))
	for i, x := range list {
		rows[i] = row(x)
	}
	return rows
}
