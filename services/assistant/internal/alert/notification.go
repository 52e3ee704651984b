package alert

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/clustername"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// The states of alerts and groups.
const (
	firing   = "firing"
	resolved = "resolved"
)

// version is the one of Alertmanager's webhook format that is read.
const version = "4"

const (
	maxKept  = 50   // alerts of one notification that are stored, those that fire first
	maxPairs = 40   // labels, and annotations, of one alert that are stored
	maxText  = 2000 // bytes of a value that are stored
	maxName  = 200  // bytes of a name that are stored
)

// notification is the body of Alertmanager's webhook, as far as it is read.
type notification struct {
	Version   string  `json:"version"`
	GroupKey  string  `json:"groupKey"`
	Truncated int     `json:"truncatedAlerts"`
	Status    string  `json:"status"`
	Alerts    []alert `json:"alerts"`

	cluster string // that is looked at, as it is stored
}

type alert struct {
	Status      string            `json:"status"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// check reports what is wrong with a body whose types are right.
func (n notification) check() error {
	var faults []problem.Field
	bad := func(msg string, loc ...string) {
		if len(faults) < 8 {
			faults = append(faults, problem.Field{Loc: append([]string{"body"}, loc...), Msg: msg})
		}
	}
	known := func(status string) bool { return status == firing || status == resolved }
	if n.Version != version {
		bad("must be "+strconv.Quote(version)+", the version of Alertmanager's webhook", "version")
	}
	if n.GroupKey == "" {
		bad("must be the key of the group", "groupKey")
	}
	if n.Truncated < 0 {
		bad("must not be negative", "truncatedAlerts")
	}
	if !known(n.Status) {
		bad("must be firing or resolved", "status")
	}
	if len(n.Alerts) == 0 {
		bad("must have at least one alert", "alerts")
	}
	for i, a := range n.Alerts {
		at := strconv.Itoa(i)
		if !known(a.Status) {
			bad("must be firing or resolved", "alerts", at, "status")
		}
		if len(a.Labels) == 0 {
			bad("must have at least one label", "alerts", at, "labels")
		}
		if a.StartsAt.IsZero() {
			bad("must be the time since when it fires", "alerts", at, "startsAt")
		}
	}
	if len(faults) > 0 {
		return fault.Invalid(faults...)
	}
	return nil
}

// key identifies the group among those of all senders. A group whose alerts come to name another cluster is another group,
// since its session is of one cluster.
func (n notification) key(principal string) []byte {
	text := principal + "\x00" + n.GroupKey
	if n.cluster != "" {
		text += "\x00" + n.cluster
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// clusterLabel is the label of an alert that names the cluster it is about.
const clusterLabel = "cluster"

// clusterOf returns the cluster to look at: the one that all labels name, of those that are configured. Alerts that name
// several are for the default, as are those that name none.
func (n notification) clusterOf(names clustername.Names) string {
	found := ""
	for _, a := range n.Alerts {
		name, ok := names.Choose(a.Labels[clusterLabel])
		switch {
		case !ok || a.Labels[clusterLabel] == "":
		case found == "":
			found = name
		case found != name:
			return names.Default()
		}
	}
	return cmp.Or(found, names.Default())
}

// digest is the same for a notification with nothing new. In a firing group, resolved alerts do not count, since each
// is reported once; nor do annotations, whose templates often include the current value.
func (n notification) digest() ([]byte, error) {
	lines := make([]string, 0, len(n.Alerts))
	for _, a := range n.Alerts {
		if a.Status != n.Status {
			continue
		}
		labels, err := json.Marshal(a.Labels) // sorted by name
		if err != nil {
			return nil, fmt.Errorf("digest of an alert: %w", err)
		}
		lines = append(lines, fmt.Sprintf("%s %s", a.StartsAt.UTC().Format(time.RFC3339Nano), labels))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(n.Status + "\n" + strings.Join(slices.Compact(lines), "\n")))
	return sum[:], nil
}

// count returns how many alerts fire and how many are over.
func (n notification) count() (fire, over int) {
	for _, a := range n.Alerts {
		if a.Status == firing {
			fire++
		}
	}
	return fire, len(n.Alerts) - fire
}

// kept is a notification as it is stored: redacted and within bounds.
type kept struct {
	Status    string  `json:"status"`
	Firing    int     `json:"firing"`   // of all alerts, with those that are not kept
	Resolved  int     `json:"resolved"` // likewise
	Truncated int     `json:"truncated"`
	Cluster   string  `json:"cluster,omitempty"` // that is looked at
	Alerts    []alert `json:"alerts"`            // those that fire first, the oldest of them first
}

func (n notification) keep() kept {
	k := kept{Status: n.Status, Truncated: n.Truncated, Cluster: n.cluster}
	k.Firing, k.Resolved = n.count()
	all := slices.Clone(n.Alerts)
	slices.SortStableFunc(all, func(a, b alert) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), a.StartsAt.Compare(b.StartsAt)) // firing sorts before resolved
	})
	for _, a := range all[:min(len(all), maxKept)] {
		a.Labels, a.Annotations = keepPairs(a.Labels), keepPairs(a.Annotations)
		k.Alerts = append(k.Alerts, a)
	}
	return k
}

// keepPairs redacts values, each beside its name.
func keepPairs(pairs map[string]string) map[string]string {
	out := make(map[string]string, min(len(pairs), maxPairs))
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		if len(out) == maxPairs {
			break
		}
		value := store.Text(pairs[name])
		safe, beside := strings.CutPrefix(redact.Text(name+"="+value), name+"=")
		if !beside { // the name itself was taken for a secret
			safe = redact.Text(value)
		}
		out[clip(store.Text(redact.Text(name)), maxName)] = clip(safe, maxText)
	}
	return out
}

// clip cuts a text after it was redacted: half of a secret would not be found.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
