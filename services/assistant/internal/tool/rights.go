package tool

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// rights returns what the assistant's own account may do: one thing, or all.
func (c *call) rights(ctx context.Context) (turn.Output, error) {
	if c.op.Action == "" {
		return c.allRights(ctx)
	}
	o := c.op.Objects()[0]
	r, err := c.Cluster.Resolve(ctx, o.Kind)
	if err != nil {
		return turn.Output{}, err
	}
	namespace := c.scope(r)
	if o.Name != "" && !c.exists(r, namespace, o.Name) {
		return turn.Output{}, notFoundError(r, o.Name)
	}
	review, err := c.Cluster.Typed().AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: c.op.Action, Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: c.op.Subresource, Name: o.Name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return turn.Output{}, err
	}
	answer := "no"
	if review.Status.Allowed {
		answer = "yes"
	}
	what := r.GVR().GroupResource().String()
	if c.op.Subresource != "" {
		what += "/" + c.op.Subresource
	}
	if o.Name != "" {
		what += " " + o.Name
	}
	text := fmt.Sprintf("%s: the assistant's account may%s %s %s in %s.\n", answer, map[bool]string{true: "", false: " not"}[review.Status.Allowed], c.op.Action, what, scopePhrase(r, namespace))
	if reason := review.Status.Reason; reason != "" {
		text += "Reason: " + table.Line(reason, maxValue) + "\n"
	}
	if failed := review.Status.EvaluationError; failed != "" {
		text += "The server could not evaluate everything: " + table.Line(failed, maxValue) + "\n"
	}
	return turn.Output{Text: text}, nil
}

// allRights lists the rules that the server reports for a namespace.
func (c *call) allRights(ctx context.Context) (turn.Output, error) {
	namespace := c.scope(cluster.Resource{Namespaced: true})
	if namespace == "" {
		namespace = metav1.NamespaceDefault // the server wants one, and the rules of the whole cluster are in any
	}
	review, err := c.Cluster.Typed().AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}, metav1.CreateOptions{})
	if err != nil {
		return turn.Output{}, err
	}
	t := table.Table{Columns: newColumns("RESOURCES", "GROUPS", "NAMES", "VERBS")}
	for _, rule := range review.Status.ResourceRules {
		t.Rows = append(t.Rows, table.Row{Cells: []string{strings.Join(rule.Resources, ","), strings.Join(rule.APIGroups, ","), strings.Join(rule.ResourceNames, ","), strings.Join(rule.Verbs, ",")}})
	}
	text, cut := t.Text(table.View{Characters: maxCharacters - maxValue})
	text = fmt.Sprintf("In namespace %s the assistant's account may:\n%s", namespace, text)
	if review.Status.Incomplete {
		text += "The list is not complete: the server's authorizer does not tell all.\n"
	}
	return turn.Output{Text: text, Truncated: cut || review.Status.Incomplete}, nil
}
