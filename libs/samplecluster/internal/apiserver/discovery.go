package apiserver

import (
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
)

// Version is the version that the sample cluster reports.
var Version = version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3-seeded", GitTreeState: "clean", Compiler: "gc", Platform: "linux/amd64"}

func serveDiscovery(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case "/version":
		writeJSON(w, http.StatusOK, Version)
	case "/livez", "/readyz", "/healthz":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok"))
	case "/api":
		writeJSON(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "/apis":
		writeJSON(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: listGroups()})
	case "/api/v1":
		writeJSON(w, http.StatusOK, listResources("", "v1"))
	default:
		parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
		if parts[0] != "apis" || len(parts) > 3 {
			return false
		}
		for _, g := range listGroups() {
			if g.Name != parts[1] {
				continue
			}
			if len(parts) == 2 {
				g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				writeJSON(w, http.StatusOK, g)
				return true
			}
			if g.PreferredVersion.Version == parts[2] {
				writeJSON(w, http.StatusOK, listResources(g.Name, parts[2]))
				return true
			}
		}
		return false
	}
	return true
}

func listGroups() []metav1.APIGroup {
	var list []metav1.APIGroup
	seen := map[string]bool{"": true}
	add := func(group, v string) {
		if !seen[group] {
			seen[group] = true
			gv := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + v, Version: v}
			list = append(list, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{gv}, PreferredVersion: gv})
		}
	}
	for _, k := range resource.All() {
		add(k.GroupVersionKind.Group, k.GroupVersionKind.Version)
	}
	add(authorizationv1.GroupName, "v1")
	add(metricsGroup, metricsVersion)
	return list
}

func listResources(group, v string) metav1.APIResourceList {
	gv := metav1.GroupVersion{Group: group, Version: v}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(), APIResources: []metav1.APIResource{}}
	half := metav1.Verbs{"get", "patch", "update"}
	for _, k := range resource.All() {
		if k.GroupVersionKind.Group != group {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.Plural, SingularName: k.Singular, Namespaced: k.Namespaced, Kind: k.GroupVersionKind.Kind, ShortNames: k.Short, Categories: k.Categories,
			Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		})
		if k.Status {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.Plural + "/status", Namespaced: k.Namespaced, Kind: k.GroupVersionKind.Kind, Verbs: half})
		}
		if k.Scale {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.Plural + "/scale", Namespaced: true, Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: half})
		}
		switch k.Plural {
		case "pods":
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: "pods/log", Namespaced: true, Kind: "Pod", Verbs: metav1.Verbs{"get"}},
				metav1.APIResource{Name: "pods/eviction", Namespaced: true, Group: "policy", Version: "v1", Kind: "Eviction", Verbs: metav1.Verbs{"create"}})
		case "namespaces":
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: "namespaces/finalize", Kind: "Namespace", Verbs: metav1.Verbs{"update"}})
		}
	}
	switch group {
	case authorizationv1.GroupName:
		for _, kind := range []string{"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"} {
			singular := strings.ToLower(kind)
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: singular + "s", SingularName: singular, Kind: kind, Verbs: metav1.Verbs{"create"}})
		}
	case metricsGroup:
		read := metav1.Verbs{"get", "list"}
		list.APIResources = append(list.APIResources,
			metav1.APIResource{Name: "nodes", Kind: "NodeMetrics", Verbs: read}, metav1.APIResource{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: read})
	}
	return list
}
