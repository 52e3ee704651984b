package recorded

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// discover answers discovery requests; ok is false for other paths.
func (t transport) discover(path string) (_ reply, ok bool, err error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var body any
	switch {
	case path == "/version":
		body = version.Info{Major: "1", GitVersion: t.version(), Platform: "linux/amd64"}
	case path == "/livez", path == "/readyz", path == "/healthz":
		return reply{200, "text/plain", []byte("ok")}, true, nil
	case path == "/api":
		body = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case path == "/apis":
		body = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: t.groups()}
	case len(parts) == 2 && parts[0] == "api" && parts[1] == "v1":
		body = t.listResources(schema.GroupVersion{Version: "v1"})
	case len(parts) == 2 && parts[0] == "apis":
		i := slices.IndexFunc(t.groups(), func(g metav1.APIGroup) bool { return g.Name == parts[1] })
		if i < 0 {
			return reply{}, false, nil
		}
		g := t.groups()[i]
		g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		body = g
	case len(parts) == 3 && parts[0] == "apis":
		list := t.listResources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
		if len(list.APIResources) == 0 {
			return reply{}, false, nil
		}
		body = list
	default:
		return reply{}, false, nil
	}
	made, err := replyJSON(body)
	return made, true, err
}

// version returns the version of the nodes' kubelets, as the recording has no other.
func (t transport) version() string {
	for _, node := range t.find("", "nodes").sorted {
		if v, _, _ := unstructured.NestedString(node.Object, "status", "nodeInfo", "kubeletVersion"); v != "" {
			return v
		}
	}
	return "v0.0.0-not-recorded"
}

// groups returns the API groups of all kinds, by name.
func (t transport) groups() []metav1.APIGroup {
	versions := map[string][]string{}
	for _, k := range t.resources {
		if k.Group != "" && !slices.Contains(versions[k.Group], k.Version) {
			versions[k.Group] = append(versions[k.Group], k.Version)
		}
	}
	var list []metav1.APIGroup
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		g := metav1.APIGroup{Name: name}
		for _, v := range slices.Sorted(slices.Values(versions[name])) {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
		}
		g.PreferredVersion = g.Versions[0]
		list = append(list, g)
	}
	return list
}

func (t transport) listResources(gv schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(), APIResources: []metav1.APIResource{}}
	for _, k := range t.resources {
		if k.Group != gv.Group || k.Version != gv.Version {
			continue
		}
		of := k.APIResource
		of.Group, of.Version, of.Verbs = "", "", metav1.Verbs{"get", "list"}
		list.APIResources = append(list.APIResources, of)
		if of.Name == "pods" && gv.Group == "" {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: "pods/log", Namespaced: true, Kind: "Pod", Verbs: metav1.Verbs{"get"}})
		}
	}
	slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
