package apiserver

import (
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

const reviews = "/apis/authorization.k8s.io/v1/"

// The caller is the platform itself, and the cluster is its own.
const ownReason = "the sample cluster belongs to its only caller"

var (
	roles               = schema.GroupResource{Group: rbacv1.GroupName, Resource: "roles"}
	roleBindings        = schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}
	clusterRoles        = schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
	clusterRoleBindings = schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}
	everything          = rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
	everyURL            = rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}
)

// review serves the access reviews; it reports whether the request was for one.
func (s *Server) review(w http.ResponseWriter, r *http.Request) bool {
	kind, ok := strings.CutPrefix(r.URL.Path, reviews)
	if !ok || r.Method != http.MethodPost {
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	var made any
	var err error
	switch kind {
	case "selfsubjectaccessreviews":
		made, err = reviewSelf(r)
	case "subjectaccessreviews":
		made, err = s.reviewSubject(r)
	case "selfsubjectrulesreviews":
		made, err = reviewRules(r)
	default:
		return false
	}
	if err != nil {
		writeError(w, err)
		return true
	}
	writeJSON(w, http.StatusCreated, made)
	return true
}

func reviewSelf(r *http.Request) (any, error) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := decodeBody(r, &review); err != nil {
		return nil, err
	}
	if err := oneOf(review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes); err != nil {
		return nil, err
	}
	review.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: authorizationv1.SchemeGroupVersion.String()}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: ownReason}
	return review, nil
}

func oneOf(resource *authorizationv1.ResourceAttributes, url *authorizationv1.NonResourceAttributes) error {
	if (resource == nil) == (url == nil) {
		return apierrors.NewBadRequest("exactly one of nonResourceAttributes or resourceAttributes must be specified")
	}
	return nil
}

func reviewRules(r *http.Request) (any, error) {
	var review authorizationv1.SelfSubjectRulesReview
	if err := decodeBody(r, &review); err != nil {
		return nil, err
	}
	if review.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	review.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectRulesReview", APIVersion: authorizationv1.SchemeGroupVersion.String()}
	review.Status = authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    []authorizationv1.ResourceRule{{Verbs: everything.Verbs, APIGroups: everything.APIGroups, Resources: everything.Resources}},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: everyURL.Verbs, NonResourceURLs: everyURL.NonResourceURLs}},
	}
	return review, nil
}

// reviewSubject judges by the roles and bindings that the cluster holds.
func (s *Server) reviewSubject(r *http.Request) (any, error) {
	var review authorizationv1.SubjectAccessReview
	if err := decodeBody(r, &review); err != nil {
		return nil, err
	}
	spec := review.Spec
	if err := oneOf(spec.ResourceAttributes, spec.NonResourceAttributes); err != nil {
		return nil, err
	}
	if spec.User == "" && len(spec.Groups) == 0 {
		return nil, apierrors.NewBadRequest("at least one of user or group must be specified")
	}
	review.TypeMeta = metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: authorizationv1.SchemeGroupVersion.String()}
	who := subjectOf(spec.User, spec.Groups)
	s.store.Do(func(tx store.Tx) {
		namespace, asked := "", rbacv1.PolicyRule{}
		if a := spec.ResourceAttributes; a != nil {
			resource := a.Resource
			if a.Subresource != "" {
				resource += "/" + a.Subresource
			}
			namespace, asked = a.Namespace, rbacv1.PolicyRule{Verbs: []string{a.Verb}, APIGroups: []string{a.Group}, Resources: []string{resource}}
			if a.Name != "" {
				asked.ResourceNames = []string{a.Name}
			}
		} else {
			asked = rbacv1.PolicyRule{Verbs: []string{spec.NonResourceAttributes.Verb}, NonResourceURLs: []string{spec.NonResourceAttributes.Path}}
		}
		review.Status.Allowed, review.Status.Reason = who.may(tx, namespace, asked)
	})
	return review, nil
}

// subject is a user with the groups that an API server would add.
type subject struct {
	user      string
	groups    []string
	namespace string // of a service account
	account   string
}

func subjectOf(user string, groups []string) subject {
	s := subject{user: user, groups: append(slices.Clone(groups), "system:authenticated")}
	if rest, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		s.namespace, s.account, _ = strings.Cut(rest, ":")
		s.groups = append(s.groups, "system:serviceaccounts", "system:serviceaccounts:"+s.namespace)
	}
	return s
}

func (s subject) in(list []rbacv1.Subject, namespace string) bool {
	return slices.ContainsFunc(list, func(b rbacv1.Subject) bool {
		switch b.Kind {
		case rbacv1.UserKind:
			return b.Name == s.user
		case rbacv1.GroupKind:
			return slices.Contains(s.groups, b.Name)
		case rbacv1.ServiceAccountKind:
			in := b.Namespace
			if in == "" {
				in = namespace
			}
			return s.account != "" && b.Name == s.account && in == s.namespace
		}
		return false
	})
}

func (s subject) may(tx store.Tx, namespace string, asked rbacv1.PolicyRule) (bool, string) {
	if slices.Contains(s.groups, "system:masters") {
		return true, ""
	}
	covers := func(rules []rbacv1.PolicyRule) bool {
		ok, _ := validation.Covers(rules, []rbacv1.PolicyRule{asked})
		return ok
	}
	for _, b := range store.List[*rbacv1.ClusterRoleBinding](tx, clusterRoleBindings, "") {
		role, ok := store.Get[*rbacv1.ClusterRole](tx, clusterRoles, "", b.RoleRef.Name)
		if ok && s.in(b.Subjects, "") && covers(role.Rules) {
			return true, `RBAC: allowed by ClusterRoleBinding "` + b.Name + `" of ClusterRole "` + role.Name + `"`
		}
	}
	if namespace == "" {
		return false, ""
	}
	for _, b := range store.List[*rbacv1.RoleBinding](tx, roleBindings, namespace) {
		var rules []rbacv1.PolicyRule
		if b.RoleRef.Kind == "ClusterRole" {
			if role, ok := store.Get[*rbacv1.ClusterRole](tx, clusterRoles, "", b.RoleRef.Name); ok {
				rules = role.Rules
			}
		} else if role, ok := store.Get[*rbacv1.Role](tx, roles, namespace, b.RoleRef.Name); ok {
			rules = role.Rules
		}
		if s.in(b.Subjects, namespace) && covers(rules) {
			return true, `RBAC: allowed by RoleBinding "` + b.Name + "/" + b.Namespace + `" of ` + b.RoleRef.Kind + ` "` + b.RoleRef.Name + `"`
		}
	}
	return false, ""
}
