package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// whoAmI returns the identity that the assistant uses in the cluster: its own account, never the caller.
func (c *call) whoAmI(ctx context.Context) (turn.Output, error) {
	review, err := c.Cluster.Typed().AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return turn.Output{}, err
	}
	who := review.Status.UserInfo
	return turn.Output{Text: fmt.Sprintf("Username  %s\nGroups    %s\nThis is the assistant's own account; callers have roles here, not accounts in the cluster.\n",
		table.Line(who.Username, maxValue), table.Line(strings.Join(who.Groups, ", "), maxValue))}, nil
}

// apiResources lists the kinds that the cluster serves.
func (c *call) apiResources(ctx context.Context) (turn.Output, error) {
	all, err := c.Cluster.Resources(ctx)
	if err != nil {
		return turn.Output{}, err
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b cluster.Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	t := table.Table{Columns: []table.Column{{Name: "NAME"}, {Name: "APIVERSION"}, {Name: "NAMESPACED"}, {Name: "KIND"}}}
	for _, r := range all {
		t.Rows = append(t.Rows, table.Row{Name: r.Resource, Cells: []string{r.Resource, r.GVR().GroupVersion().String(), fmt.Sprint(r.Namespaced), r.Kind}})
	}
	text, cut := t.Text(table.View{Characters: maxCharacters})
	whole, _ := t.Text(table.View{Characters: wholeCharacters})
	return turn.Output{Text: text, Truncated: cut, Whole: whole}, nil
}

// clusterInfo returns the server's version, and the Services of kube-system that are parts of the cluster. Addresses of
// the control plane are no concern of a caller and are left out.
func (c *call) clusterInfo(ctx context.Context) (turn.Output, error) {
	version, err := c.Cluster.Discovery().ServerVersion()
	if err != nil {
		return turn.Output{}, err
	}
	text := fmt.Sprintf("The control plane answers. Version %s.\n", table.Line(version.GitVersion, maxValue))
	if name := c.Cluster.Name(); name != "" {
		text += "Name: " + table.Line(name, maxValue) + "\n"
	}
	services, err := c.Cluster.Typed().CoreV1().Services(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/cluster-service=true"})
	if err != nil {
		return turn.Output{}, err
	}
	for i := range services.Items {
		if c.hidden(metav1.NamespaceSystem) {
			break
		}
		text += fmt.Sprintf("%s runs as service %s in namespace %s.\n", table.Line(cmp.Or(services.Items[i].Labels["kubernetes.io/name"], services.Items[i].Name), maxValue), services.Items[i].Name, metav1.NamespaceSystem)
	}
	return turn.Output{Text: text}, nil
}
