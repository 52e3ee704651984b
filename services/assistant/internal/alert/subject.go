package alert

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/clustername"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/investigate"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// maxSubjects limits the questions that one notification asks.
const maxSubjects = 3

// maxPlaces limits the namespaces that one notification is looked up in.
const maxPlaces = 10

// subject is the object, namespace or cluster that one question is about. It exists.
type subject struct {
	namespace string
	kind      string // lower case; empty: the namespace as a whole
	name      string
}

// question returns a question about the subject; its text comes only from this program and from names in the cluster.
func (s subject) question() string {
	switch {
	case s.kind != "" && s.namespace != "":
		return "What is wrong with " + s.kind + "/" + s.name + " in namespace " + s.namespace + "?"
	case s.kind != "":
		return "What is wrong with " + s.kind + "/" + s.name + "?"
	case s.namespace != "":
		return "What is wrong in namespace " + s.namespace + "?"
	}
	return "What is wrong?"
}

// subjects looks up what the labels of the alerts that fire name. With none of it there, the cluster is the subject.
func (s *Service) subjects(ctx context.Context, who event.Who, k kept) ([]subject, error) {
	box := turn.ReadWith(s.Tools, turn.Turn{Who: who, Cluster: k.Cluster})
	var found []subject
	for _, place := range placesOf(k.here(s.Clusters)) {
		snapshot, err := box.Snapshot(ctx, place.namespace)
		var refused *operation.Fault
		if place.namespace != "" && errors.As(err, &refused) && refused.Reason == operation.NotFound {
			continue // a label says so, and no more
		}
		if err != nil {
			return nil, err
		}
		found = append(found, place.subjects(snapshot)...)
	}
	if len(found) == 0 && k.Status == firing {
		found = []subject{{}}
	}
	return found, nil
}

// here returns the notification without the alerts that a label assigns to another configured cluster: there a name can be
// that of another object.
func (k kept) here(names clustername.Names) kept {
	k.Alerts = slices.DeleteFunc(slices.Clone(k.Alerts), func(a alert) bool {
		name, ok := names.Choose(a.Labels[clusterLabel])
		return a.Labels[clusterLabel] != "" && ok && name != k.Cluster
	})
	return k
}

// whichCluster names the session's cluster, and the labels that name others; empty if the only cluster has no name.
func (k kept) whichCluster(names clustername.Names) string {
	if k.Cluster == "" || k.Status == resolved {
		return ""
	}
	var elsewhere, unknown []string
	for _, a := range k.Alerts {
		label := a.Labels[clusterLabel]
		list := &unknown
		if _, ok := names.Choose(label); ok {
			list = &elsewhere
		}
		if label != "" && label != k.Cluster && !slices.Contains(*list, label) {
			*list = append(*list, label)
		}
	}
	text := "\n\nThis is about the cluster " + engine.QuoteCode(k.Cluster) + "."
	if len(elsewhere) > 0 {
		text += " Alerts with another cluster in their labels are not looked at: " + engine.QuoteCodes(elsewhere) + "."
	}
	if len(unknown) > 0 {
		text += " The labels also name clusters that are not configured: " + engine.QuoteCodes(unknown) + "."
	}
	return text
}

// place is a namespace, or none, with the names that alerts of it have by kind.
type place struct {
	namespace string
	alerts    []map[string]string
}

// placesOf sorts the alerts that fire by the namespace in their labels.
func placesOf(k kept) []place {
	var places []place
	for _, a := range k.Alerts {
		if a.Status != firing {
			continue
		}
		names := namesIn(a.Labels)
		namespace := names["namespace"]
		at := slices.IndexFunc(places, func(p place) bool { return p.namespace == namespace })
		if at < 0 {
			if len(places) == maxPlaces {
				continue
			}
			at = len(places)
			places = append(places, place{namespace: namespace})
		}
		places[at].alerts = append(places[at].alerts, names)
	}
	return places
}

// namesIn are the labels whose values can be names, by kind. Prometheus puts exported_ before a label of the metric where the
// scrape has one of that name, and kube-state-metrics calls the name of a job job_name.
func namesIn(labels map[string]string) map[string]string {
	names := map[string]string{}
	for _, prefix := range []string{"", "exported_"} {
		for _, suffix := range []string{"", "_name"} {
			for label, value := range labels {
				kind, ok := strings.CutPrefix(label, prefix)
				if kind, ok2 := strings.CutSuffix(kind, suffix); ok && ok2 && operation.ValidName(value) {
					names[kind] = value // the later form is the more certain one
				}
			}
		}
	}
	return names
}

// subjects are the objects that are there, one for each alert; the namespace if there is none, or if there are many.
func (p place) subjects(s *engine.Snapshot) []subject {
	var found []subject
	for _, names := range p.alerts {
		objects := investigate.Named(s, p.namespace, names)
		if len(objects) == 0 {
			continue
		}
		o := subject{namespace: objects[0].Namespace, kind: strings.ToLower(objects[0].Kind), name: objects[0].Name}
		if !slices.Contains(found, o) {
			found = append(found, o)
		}
	}
	if p.namespace != "" && (len(found) == 0 || len(found) > maxSubjects) && investigate.HasNamespace(s, p.namespace) {
		return []subject{{namespace: p.namespace}}
	}
	return found
}
