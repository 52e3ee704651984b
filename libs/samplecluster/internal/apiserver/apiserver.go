// Package apiserver serves the Kubernetes API from the store, well enough that client-go's discovery, typed and dynamic
// clients cannot distinguish it from a small real cluster.
package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

// maxBody is a real API server's default: 3 MiB.
const maxBody = 3 << 20

// LogLine is one line a container wrote.
type LogLine struct {
	Time time.Time
	Text string
}

// Kubelet is the API server's view of a pod's node.
type Kubelet interface {
	// Logs returns the lines of a container's current or previous run, oldest first, and whether there is such a run.
	Logs(tx store.Tx, pod *corev1.Pod, container string, previous bool, now time.Time) ([]LogLine, bool)
	// Usage returns what a container uses, and whether it runs.
	Usage(tx store.Tx, pod *corev1.Pod, container *corev1.Container) (corev1.ResourceList, bool)
}

// Server is the handler.
type Server struct {
	store    *store.Store
	kubelet  Kubelet
	now      func() time.Time
	managers managers
}

// New returns a handler over the store.
func New(s *store.Store, k Kubelet, now func() time.Time) *Server {
	return &Server{store: s, kubelet: k, now: now}
}

// request is a resource request taken apart.
type request struct {
	kind        resource.Kind
	namespace   string
	name        string
	subresource string
	*http.Request
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if serveDiscovery(w, r) || serveOpenAPI(w, r) || s.review(w, r) || s.metrics(w, r) {
		return
	}
	req, err := parsePath(r)
	if err != nil {
		writeError(w, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := s.dispatch(w, req); err != nil {
		writeError(w, err)
	}
}

// errNoRoute is a path the server does not serve at all.
var errNoRoute = apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, true)

// parsePath parses /api/v1/… and /apis/GROUP/VERSION/….
func parsePath(r *http.Request) (request, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var group, version string
	switch {
	case len(parts) > 2 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return request{}, errNoRoute
	}
	req := request{Request: r}
	if len(parts) >= 3 && parts[0] == "namespaces" && (group != "" || parts[2] != "status" && parts[2] != "finalize") {
		req.namespace, parts = parts[1], parts[2:]
	}
	kind, ok := resource.Lookup(group, version, parts[0])
	if !ok || kind.Namespaced != (req.namespace != "") && (len(parts) > 1 || !kind.Namespaced) || len(parts) > 3 {
		return request{}, errNoRoute
	}
	req.kind = kind
	if len(parts) > 1 {
		req.name = parts[1]
	}
	if len(parts) > 2 {
		req.subresource = parts[2]
	}
	if !servesSubresource(kind, req.subresource) {
		return request{}, errNoRoute
	}
	return req, nil
}

func servesSubresource(k resource.Kind, subresource string) bool {
	switch subresource {
	case "":
		return true
	case "status":
		return k.Status
	case "scale":
		return k.Scale
	case "log", "eviction":
		return k.Plural == "pods"
	case "finalize":
		return k.Plural == "namespaces"
	}
	return false
}

func (s *Server) dispatch(w http.ResponseWriter, r request) error {
	switch {
	case r.Method == http.MethodGet && r.subresource == "log":
		return s.logs(w, r)
	case r.Method == http.MethodGet && r.subresource == "scale":
		return s.getScale(w, r)
	case r.Method == http.MethodGet && r.subresource == "eviction", r.Method != http.MethodGet && r.subresource == "log":
	case r.Method == http.MethodGet && r.name != "":
		return s.get(w, r)
	case r.Method == http.MethodGet && isWatch(r):
		return s.watch(w, r)
	case r.Method == http.MethodGet:
		return s.list(w, r)
	case r.Method == http.MethodPost && r.subresource == "eviction":
		return s.evict(w, r)
	case r.Method == http.MethodPost && r.name == "" && (r.namespace != "" || !r.kind.Namespaced):
		return s.create(w, r)
	case r.Method == http.MethodPut && r.name != "" && r.subresource == "scale", r.Method == http.MethodPatch && r.subresource == "scale":
		return s.setScale(w, r)
	case r.Method == http.MethodPut && r.name != "":
		return s.update(w, r)
	case r.Method == http.MethodPatch && r.name != "":
		return s.patch(w, r)
	case r.Method == http.MethodDelete && r.subresource == "" && r.name != "":
		return s.remove(w, r)
	case r.Method == http.MethodDelete && r.subresource == "":
		return s.removeAll(w, r)
	}
	return apierrors.NewMethodNotSupported(r.kind.GroupResource(), strings.ToLower(r.Method))
}

// writeError answers with the Status object of an error.
func writeError(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &known):
	case errors.As(err, &tooLarge):
		known = apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", tooLarge.Limit))
	case errors.Is(err, context.Canceled):
		known = apierrors.NewTimeoutError("the request was given up", 1)
	default:
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	writeJSON(w, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "the answer could not be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // a client that went away hears nothing
}

func successStatus(r request, o resource.Object) metav1.Status {
	gk := r.kind.GroupVersionKind
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: o.GetName(), Group: gk.Group, Kind: r.kind.Plural, UID: o.GetUID()},
	}
}
