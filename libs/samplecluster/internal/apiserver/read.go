package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/printing"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

func (s *Server) find(tx store.Tx, r request) (resource.Object, error) {
	o, ok := tx.Get(r.kind.GroupResource(), r.namespace, r.name)
	if !ok {
		return nil, apierrors.NewNotFound(r.kind.GroupResource(), r.name)
	}
	return o, nil
}

func (s *Server) get(w http.ResponseWriter, r request) (err error) {
	var o resource.Object
	s.store.Do(func(tx store.Tx) { o, err = s.find(tx, r) })
	if err != nil {
		return err
	}
	if printing.Wanted(r.Header.Get("Accept")) {
		writeJSON(w, http.StatusOK, printing.Table(r.kind, []resource.Object{o}, metav1.ListMeta{ResourceVersion: o.GetResourceVersion()}, s.now()))
		return nil
	}
	writeJSON(w, http.StatusOK, o)
	return nil
}

// list is the wire form of every list.
type list struct {
	metav1.TypeMeta
	Metadata metav1.ListMeta   `json:"metadata"`
	Items    []resource.Object `json:"items"`
}

// page is the content of a continue token: the version of the first page and the last object sent.
type page struct {
	Version   string `json:"rv"`
	Namespace string `json:"ns"`
	Name      string `json:"name"`
}

func (s *Server) list(w http.ResponseWriter, r request) error {
	match, err := parseSelectors(r)
	if err != nil {
		return err
	}
	limit, err := parseNumber(r, "limit")
	if err != nil {
		return err
	}
	var after page
	if token := r.URL.Query().Get("continue"); token != "" {
		data, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || json.Unmarshal(data, &after) != nil {
			return apierrors.NewBadRequest("continue key is not valid: the token was not made by this server")
		}
	}
	var found []resource.Object
	var version string
	s.store.Do(func(tx store.Tx) {
		version = strconv.FormatUint(tx.Version(), 10)
		for _, o := range tx.List(r.kind.GroupResource(), r.namespace) {
			if match(o) {
				found = append(found, o)
			}
		}
	})
	out := list{TypeMeta: metav1.TypeMeta{Kind: r.kind.GroupVersionKind.Kind + "List", APIVersion: r.kind.GroupVersionKind.GroupVersion().String()}, Items: []resource.Object{}}
	out.Metadata.ResourceVersion = version
	if after.Version != "" {
		// Later pages show the present, not a snapshot, but carry the first page's version so that a watch from there
		// misses nothing.
		out.Metadata.ResourceVersion = after.Version
	}
	for i, o := range found {
		if after.Version != "" && (o.GetNamespace() < after.Namespace || o.GetNamespace() == after.Namespace && o.GetName() <= after.Name) {
			continue
		}
		out.Items = append(out.Items, o)
		if limit > 0 && int64(len(out.Items)) == limit && i+1 < len(found) {
			token, err := json.Marshal(page{Version: out.Metadata.ResourceVersion, Namespace: o.GetNamespace(), Name: o.GetName()})
			if err != nil {
				return err
			}
			out.Metadata.Continue = base64.RawURLEncoding.EncodeToString(token)
			left := int64(len(found) - i - 1)
			out.Metadata.RemainingItemCount = &left
			break
		}
	}
	if printing.Wanted(r.Header.Get("Accept")) {
		writeJSON(w, http.StatusOK, printing.Table(r.kind, out.Items, out.Metadata, s.now()))
		return nil
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// parseNumber reads a query parameter that must be a whole number, 0 if absent.
func parseNumber(r request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid %s %q: must be a whole number that is not negative", name, text))
	}
	return n, nil
}

func (s *Server) logs(w http.ResponseWriter, r request) error {
	query := r.URL.Query()
	container, previous := query.Get("container"), query.Get("previous") == "true"
	tail, limit := int64(-1), int64(-1)
	for name, to := range map[string]*int64{"tailLines": &tail, "limitBytes": &limit} {
		if query.Get(name) == "" {
			continue
		}
		n, err := parseNumber(r, name)
		if err != nil {
			return err
		}
		*to = n
	}
	now := s.now()
	var since time.Time
	if seconds, err := parseNumber(r, "sinceSeconds"); err != nil {
		return err
	} else if seconds > 0 {
		since = now.Add(-time.Duration(min(seconds, 1<<31)) * time.Second)
	}
	if text := query.Get("sinceTime"); text != "" {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return apierrors.NewBadRequest("invalid sinceTime: " + err.Error())
		}
		since = t
	}
	var lines []LogLine
	var err error
	s.store.Do(func(tx store.Tx) {
		o, missing := s.find(tx, r)
		if missing != nil {
			err = missing
			return
		}
		lines, err = s.containerLogs(tx, o.(*corev1.Pod), container, previous, now)
	})
	if err != nil {
		return err
	}
	kept := lines[:0]
	for _, l := range lines {
		if !l.Time.Before(since) {
			kept = append(kept, l)
		}
	}
	if tail >= 0 && int64(len(kept)) > tail {
		kept = kept[int64(len(kept))-tail:]
	}
	var text strings.Builder
	for _, l := range kept {
		if query.Get("timestamps") == "true" {
			text.WriteString(l.Time.UTC().Format(time.RFC3339Nano) + " ")
		}
		text.WriteString(l.Text + "\n")
	}
	body := text.String()
	if limit >= 0 && int64(len(body)) > limit {
		body = body[:limit]
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write([]byte(body))
	return nil
}

func (s *Server) containerLogs(tx store.Tx, pod *corev1.Pod, container string, previous bool, now time.Time) ([]LogLine, error) {
	var names, inits []string
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.InitContainers {
		inits = append(inits, c.Name)
	}
	if container == "" {
		if len(names) > 1 {
			text := fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s]", pod.Name, strings.Join(names, " "))
			if len(inits) > 0 {
				text += fmt.Sprintf(" or one of the init containers: [%s]", strings.Join(inits, " "))
			}
			return nil, apierrors.NewBadRequest(text)
		}
		container = names[0]
	}
	known := false
	for _, name := range append(inits, names...) {
		known = known || name == container
	}
	if !known {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", container, pod.Name))
	}
	if pod.Spec.NodeName == "" {
		return nil, nil // a pod without a node has written nothing: an empty 200, as in a real cluster
	}
	lines, ran := s.kubelet.Logs(tx, pod, container, previous, now)
	if ran {
		return lines, nil
	}
	if previous {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("previous terminated container %q in pod %q not found", container, pod.Name))
	}
	for _, st := range append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
		if st.Name != container || st.State.Waiting == nil {
			continue
		}
		text := fmt.Sprintf("container %q in pod %q is waiting to start: ", container, pod.Name)
		switch reason := st.State.Waiting.Reason; reason {
		case "ErrImagePull", "ImagePullBackOff":
			return nil, apierrors.NewBadRequest(text + "trying and failing to pull image")
		default:
			return nil, apierrors.NewBadRequest(text + reason)
		}
	}
	return nil, nil
}
