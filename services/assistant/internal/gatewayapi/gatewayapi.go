// Package gatewayapi defines the kinds of gateway.networking.k8s.io that are diagnosed, with the fields that a
// diagnosis reads. The versions v1 and v1beta1 agree in these. The project's own module is not used: it would pull in
// its clients for a few structs.
package gatewayapi

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is the API group of all kinds here.
const Group = "gateway.networking.k8s.io"

// GatewayClass names the controller of its gateways.
type GatewayClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ControllerName string `json:"controllerName"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Gateway listens for traffic.
type Gateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              GatewaySpec   `json:"spec"`
	Status            GatewayStatus `json:"status"`
}

// GatewaySpec is the spec of a Gateway.
type GatewaySpec struct {
	GatewayClassName string     `json:"gatewayClassName"`
	Listeners        []Listener `json:"listeners"`
}

// Listener is one port and host that a Gateway serves.
type Listener struct {
	Name          string         `json:"name"`
	Hostname      string         `json:"hostname"` // empty: any
	Port          int32          `json:"port"`
	Protocol      string         `json:"protocol"`
	TLS           *ListenerTLS   `json:"tls"`
	AllowedRoutes *AllowedRoutes `json:"allowedRoutes"`
}

// ListenerTLS selects the certificates of a listener.
type ListenerTLS struct {
	Mode            string      `json:"mode"` // empty: Terminate
	CertificateRefs []Reference `json:"certificateRefs"`
}

// AllowedRoutes restricts the routes that a listener accepts.
type AllowedRoutes struct {
	Namespaces *struct {
		From     string                `json:"from"` // All, Selector, None; empty: Same
		Selector *metav1.LabelSelector `json:"selector"`
	} `json:"namespaces"`
	Kinds []RouteKind `json:"kinds"`
}

// RouteKind is a kind of route.
type RouteKind struct {
	Group *string `json:"group"`
	Kind  string  `json:"kind"`
}

// GatewayStatus is the status of a Gateway, written by the controller.
type GatewayStatus struct {
	Addresses []struct {
		Value string `json:"value"`
	} `json:"addresses"`
	Conditions []metav1.Condition `json:"conditions"`
	Listeners  []ListenerStatus   `json:"listeners"`
}

// ListenerStatus is the status of a listener, written by the controller.
type ListenerStatus struct {
	Name           string             `json:"name"`
	AttachedRoutes int32              `json:"attachedRoutes"`
	SupportedKinds []RouteKind        `json:"supportedKinds"`
	Conditions     []metav1.Condition `json:"conditions"`
}

// Route is an HTTPRoute, GRPCRoute or TLSRoute, according to its kind.
type Route struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              RouteSpec `json:"spec"`
	Status            struct {
		Parents []ParentStatus `json:"parents"`
	} `json:"status"`
}

// RouteSpec is the spec of a Route.
type RouteSpec struct {
	ParentRefs []ParentRef `json:"parentRefs"`
	Hostnames  []string    `json:"hostnames"` // none: those of the listeners
	Rules      []Rule      `json:"rules"`
}

// ParentRef names the parent that a route attaches to. It goes into patches, so it contains all fields, and omits
// absent ones.
type ParentRef struct {
	Group       *string `json:"group,omitempty"`
	Kind        *string `json:"kind,omitempty"`
	Namespace   *string `json:"namespace,omitempty"`
	Name        string  `json:"name"`
	SectionName *string `json:"sectionName,omitempty"`
	Port        *int32  `json:"port,omitempty"`
}

// Rule routes requests to backends.
type Rule struct {
	BackendRefs []BackendRef `json:"backendRefs"`
	Filters     []struct {
		Type string `json:"type"`
	} `json:"filters"`
	Matches  []Match  `json:"matches"`
	Timeouts Timeouts `json:"timeouts"`
}

// Match selects the requests of a rule; for a GRPCRoute the path is empty.
type Match struct {
	Path struct {
		Value string `json:"value"`
	} `json:"path"`
}

// Timeouts are durations in Go's notation; empty: the controller's default, 0s: none.
type Timeouts struct {
	Request        string `json:"request"`
	BackendRequest string `json:"backendRequest"`
}

// BackendRef is a backend with its port and share.
type BackendRef struct {
	Reference
	Port   *int32 `json:"port"`
	Weight *int32 `json:"weight"` // nil: 1
}

// Reference names an object, possibly in another namespace.
type Reference struct {
	Group     *string `json:"group"`
	Kind      *string `json:"kind"`
	Namespace *string `json:"namespace"`
	Name      string  `json:"name"`
}

// ParentStatus is the status of a route at one parent, written by one controller.
type ParentStatus struct {
	ParentRef      ParentRef          `json:"parentRef"`
	ControllerName string             `json:"controllerName"`
	Conditions     []metav1.Condition `json:"conditions"`
}

// ReferenceGrant permits objects of other namespaces to refer to those of its namespace.
type ReferenceGrant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		From []struct {
			Group     string `json:"group"`
			Kind      string `json:"kind"`
			Namespace string `json:"namespace"`
		} `json:"from"`
		To []struct {
			Group string  `json:"group"`
			Kind  string  `json:"kind"`
			Name  *string `json:"name"`
		} `json:"to"`
	} `json:"spec"`
}

// IsGateway reports whether a route's parent is a Gateway; a mesh attaches routes to Services.
func (p ParentRef) IsGateway() bool {
	return valueOr(p.Group, Group) == Group && valueOr(p.Kind, "Gateway") == "Gateway"
}

// NamespaceFrom returns the parent's namespace, which defaults to the route's.
func (p ParentRef) NamespaceFrom(own string) string { return cmp.Or(valueOr(p.Namespace, own), own) }

// IsSame reports whether two references of routes in a namespace name the same parent.
func (p ParentRef) IsSame(o ParentRef, own string) bool {
	return p.IsGateway() == o.IsGateway() && p.Name == o.Name && p.NamespaceFrom(own) == o.NamespaceFrom(own) &&
		valueOr(p.SectionName, "") == valueOr(o.SectionName, "") && valueOr(p.Port, 0) == valueOr(o.Port, 0)
}

// StatusAt returns the status of a route at one parent. Several controllers may write there: that of the gateway's
// class counts. If that is unknown or absent, the first counts, or one that contradicts it with a refusal; disputed
// reports a contradiction.
func (r *Route) StatusAt(p ParentRef, controller string) (said ParentStatus, disputed bool) {
	var all []ParentStatus
	for _, s := range r.Status.Parents {
		if !s.ParentRef.IsSame(p, r.Namespace) {
			continue
		}
		if controller != "" && s.ControllerName == controller {
			return s, false
		}
		all = append(all, s)
	}
	for i, s := range all {
		if i == 0 {
			said = s
			continue
		}
		for _, kind := range []string{"Accepted", "ResolvedRefs"} {
			a, b := FindCondition(said.Conditions, kind), FindCondition(s.Conditions, kind)
			if a == nil || b == nil || a.Status == b.Status || said.ControllerName == s.ControllerName {
				continue
			}
			disputed = true
			if b.Status == metav1.ConditionFalse {
				said = s
				break
			}
		}
	}
	return said, disputed
}

// IsKind reports whether a reference is to a kind of the core group; a reference without a kind is to implied.
func (r Reference) IsKind(kind, implied string) bool {
	return valueOr(r.Group, "") == "" && valueOr(r.Kind, implied) == kind
}

// NamespaceFrom returns the object's namespace, which defaults to that of the referring object.
func (r Reference) NamespaceFrom(own string) string { return cmp.Or(valueOr(r.Namespace, own), own) }

// Share returns the weight of a backend.
func (b BackendRef) Share() int32 { return valueOr(b.Weight, 1) }

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
