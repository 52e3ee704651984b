// Package clustername knows which clusters the assistant serves, by name. A session and each of its writes are of one
// cluster for ever: its name is stored with them.
package clustername

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Header of requests names the cluster of a new session.
const Header = "X-Cluster"

// Names are the clusters that are served. The zero value serves one without a name.
type Names struct {
	list       []string
	configured bool
}

// Only returns the names of an assistant with one cluster. Nothing that it stores or shows has the name, except sentences
// about the cluster itself.
func Only(name string) Names { return Names{list: []string{name}} }

// Configured returns the names of clusters that were configured by name; the first is the default.
func Configured(names []string) Names { return Names{list: slices.Clone(names), configured: true} }

// List returns the configured names, the default first; nil if there is one cluster that was not configured by name.
func (n Names) List() []string {
	if !n.configured {
		return nil
	}
	return slices.Clone(n.list)
}

// Default returns the name that is stored where a caller gives none.
func (n Names) Default() string {
	if !n.configured {
		return ""
	}
	return n.list[0]
}

// Choose returns the name to store for the one that a caller gives; empty selects the default.
func (n Names) Choose(asked string) (name string, ok bool) {
	if asked == "" || !n.configured && slices.Contains(n.list, asked) {
		return n.Default(), true
	}
	return asked, n.configured && slices.Contains(n.list, asked)
}

// Stored returns the name of a cluster as it would be stored now: a replica without configured names stores none.
func (n Names) Stored(name string) string {
	if now, ok := n.Choose(name); ok {
		return now
	}
	return name
}

// Index returns the place of a stored name in the order of the configuration. Its error is a refusal whose text is a
// sentence for the reader.
func (n Names) Index(stored string) (int, error) {
	name := n.Stored(stored)
	if name == n.Default() {
		return 0, nil
	}
	if i := slices.Index(n.list, name); i > 0 && n.configured {
		return i, nil
	}
	return 0, operation.Refuse(operation.Unavailable, "cluster", "The cluster %s is not configured any more.", operation.Quote(stored))
}

// Display returns the name for a sentence about the cluster.
func (n Names) Display(stored string) string {
	name := n.Stored(stored)
	if name == "" && len(n.list) > 0 {
		return n.list[0]
	}
	return name
}

// FromHeader returns the stored name of the cluster that a request names; empty if it names none. Its error is a problem,
// 422, that lists the clusters there are.
func (n Names) FromHeader(h http.Header) (string, error) {
	values := slices.DeleteFunc(slices.Clone(h.Values(Header)), func(v string) bool { return v == "" })
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		if name, ok := n.Choose(values[0]); ok {
			return name, nil
		}
		return "", fault.InvalidHeader(Header, "must be one of "+strings.Join(n.list, ", "))
	}
	return "", fault.InvalidHeader(Header, "must be sent once")
}
