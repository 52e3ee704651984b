package investigate

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

func isNotFound(err error) bool {
	var fault *operation.Fault
	return errors.As(err, &fault) && fault.Reason == operation.NotFound
}

// describeRollout describes the progress of a rollout from the fields that rolloutStatus reads, judged as kubectl does.
// done is true if nothing more happens automatically.
func describeRollout(fields []string) (text string, done bool) {
	f := func(i int) string {
		if i < len(fields) {
			return fields[i]
		}
		return ""
	}
	n := func(i int) int {
		v, err := strconv.Atoi(f(i))
		if err != nil {
			return 0 // not set
		}
		return v
	}
	wanted, updated, all, available := n(3), n(4), n(5), n(6)
	switch {
	case f(0) == "DaemonSet":
		wanted, updated, all, available = n(7), n(8), n(7), n(9)
	case f(0) == "StatefulSet":
		available = n(10)
	case f(0) != "Deployment":
		return "Only Deployments, StatefulSets and DaemonSets roll out.", true
	}
	switch {
	case n(1) > n(2):
		return "Waiting for the controller to see the newest spec.", false
	case f(11) == "OnDelete":
		return "Its update strategy is OnDelete: pods get the new spec only when they are deleted, so there is no rollout to wait for.", true
	case f(14) == "ProgressDeadlineExceeded":
		return fmt.Sprintf("Failed: the rollout exceeded its progress deadline, with %d of %d replicas updated and %d available.", updated, wanted, available), true
	case f(13) == "true" && updated < wanted:
		return fmt.Sprintf("Paused, with %d of %d replicas updated; resume it to continue.", updated, wanted), true
	case f(0) == "StatefulSet" && n(12) > 0:
		if updated >= wanted-n(12) {
			return fmt.Sprintf("Partitioned: %d replicas are updated, those below ordinal %d stay as they are until the partition is lowered.", updated, n(12)), true
		}
		return fmt.Sprintf("Partitioned rollout: %d of %d new replicas are updated.", updated, wanted-n(12)), false
	case updated < wanted:
		return fmt.Sprintf("Not done: %d of %d replicas are updated.", updated, wanted), false
	case all > updated:
		return fmt.Sprintf("Not done: %d old replicas have yet to end.", all-updated), false
	case available < updated:
		return fmt.Sprintf("Not done: %d of %d updated replicas are available.", available, updated), false
	}
	return fmt.Sprintf("Successfully rolled out: %d of %d replicas are updated and available.", available, wanted), true
}
