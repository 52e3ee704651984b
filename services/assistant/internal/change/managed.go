package change

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
)

// managers notes the Argo CD applications that an object belongs to: a change made here differs from their source.
// Failing to read them does not prevent a change.
func (s *Service) managers(ctx context.Context, c *call) (notes []string) {
	served, err := s.Cluster.Resources(ctx)
	at := slices.IndexFunc(served, func(r cluster.Resource) bool { return r.Group == argocd.Group && r.Resource == "applications" })
	if err != nil || at < 0 {
		return nil
	}
	found, err := s.list(ctx, served[at].Ref("", ""), metav1.ListOptions{}, maxAffected)
	if err != nil {
		return []string{"Whether Argo CD manages this could not be read."}
	}
	for i := range found {
		var a argocd.Application
		if runtime.DefaultUnstructuredConverter.FromUnstructured(found[i].Object, &a) != nil || !a.Manages(c.ref, c.live.GetAnnotations()) {
			continue
		}
		switch {
		case a.HealsItself():
			notes = append(notes, fmt.Sprintf("The Argo CD application %s manages this and heals itself, so it will take the change back: change it at its source.", a.Name))
		case a.IsAutomatic():
			notes = append(notes, fmt.Sprintf("The Argo CD application %s manages this, and takes the change back with its next sync: change it at its source, too.", a.Name))
		default:
			notes = append(notes, fmt.Sprintf("The Argo CD application %s manages this, and a sync takes the change back: change it at its source, too.", a.Name))
		}
	}
	return notes
}
