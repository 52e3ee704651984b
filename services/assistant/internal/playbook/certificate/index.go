// Package certificate explains why cert-manager does not issue or renew certificates: the deepest failing object of
// issuer, request, order and challenge names the cause.
package certificate

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Index finds the objects of a snapshot.
type Index struct {
	*engine.Index

	issuers    map[operation.Ref]*certmanager.Issuer
	requests   map[engine.Name][]*certmanager.CertificateRequest // by certificate, newest first
	orders     map[engine.Name][]*certmanager.Order              // by request, newest first
	challenges map[engine.Name][]*certmanager.Challenge          // by order, by host
}

// New returns the index of this package over x, for one diagnosis.
func New(x *engine.Index) *Index {
	own := &Index{
		Index: x, issuers: map[operation.Ref]*certmanager.Issuer{}, requests: map[engine.Name][]*certmanager.CertificateRequest{},
		orders: map[engine.Name][]*certmanager.Order{}, challenges: map[engine.Name][]*certmanager.Challenge{},
	}
	for i := range x.Issuers {
		own.issuers[issuerRef(&x.Issuers[i])] = &x.Issuers[i]
	}
	for i := range x.CertificateRequests {
		r := &x.CertificateRequests[i]
		put(own.requests, r, cmp.Or(ownerName(r, "Certificate"), r.Annotations[certmanager.NameAnnotation]))
	}
	for i := range x.Orders {
		put(own.orders, &x.Orders[i], ownerName(&x.Orders[i], "CertificateRequest"))
	}
	for i := range x.Challenges {
		put(own.challenges, &x.Challenges[i], ownerName(&x.Challenges[i], "Order"))
	}
	sortNewest(own.requests)
	sortNewest(own.orders)
	for _, list := range own.challenges {
		slices.SortFunc(list, func(a, b *certmanager.Challenge) int {
			return cmp.Or(cmp.Compare(a.Spec.DNSName, b.Spec.DNSName), cmp.Compare(a.Name, b.Name))
		})
	}
	return own
}

// Checks returns the checks of this package.
func (x *Index) Checks() engine.Checks {
	return engine.Checks{Objects: engine.BindObjectChecks(x, checkIssuers, checkCertificates)}
}

// put adds an object to those of an owner in its namespace.
func put[P metav1.Object](to map[engine.Name][]P, o P, owner string) {
	if owner != "" {
		of := engine.Name{Namespace: o.GetNamespace(), Name: owner}
		to[of] = append(to[of], o)
	}
}

// ownerName returns the name of an object's owner of a kind; empty if it has none.
func ownerName(o metav1.Object, kind string) string {
	for _, owner := range o.GetOwnerReferences() {
		if owner.Kind == kind {
			return owner.Name
		}
	}
	return ""
}

func sortNewest[P metav1.Object](all map[engine.Name][]P) {
	for _, list := range all {
		slices.SortFunc(list, func(a, b P) int {
			return cmp.Or(b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time), cmp.Compare(b.GetName(), a.GetName()))
		})
	}
}

// newest returns the first of a list that sortNewest has ordered, or nil.
func newest[T any](list []*T) *T {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func issuerRef(i *certmanager.Issuer) operation.Ref {
	return operation.Ref{Group: certmanager.Group, Version: "v1", Kind: i.Kind, Namespace: i.Namespace, Name: i.Name}
}

// issuerOf returns the issuer that a certificate names, which may not exist.
func issuerOf(c *certmanager.Certificate) operation.Ref {
	r := operation.Ref{Group: certmanager.Group, Version: "v1", Kind: c.Spec.IssuerRef.IssuerKind(), Namespace: c.Namespace, Name: c.Spec.IssuerRef.Name}
	if r.Kind == "ClusterIssuer" {
		r.Namespace = ""
	}
	return r
}

// knows reports whether an object of a kind, plural, that is not in the snapshot is absent from the cluster.
func (x *Index) knows(kind string) bool {
	return !x.Unread[kind] && (x.CertificateKinds == nil || x.CertificateKinds[kind])
}

// quoteCondition quotes a condition of a status.
func quoteCondition(c *metav1.Condition) string {
	text := fmt.Sprintf("`%s` is %s, with reason %s", c.Type, engine.QuoteCode(string(c.Status)), engine.QuoteCode(c.Reason))
	if c.Message != "" {
		text += ": " + engine.QuoteLine(c.Message)
	}
	return text
}

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }

func isFalse(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionFalse }

// findCondition returns the condition of a type, or nil.
func findCondition(all []metav1.Condition, kind string) *metav1.Condition {
	return gatewayapi.FindCondition(all, kind)
}
