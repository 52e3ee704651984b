package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/libs/samplecluster"
)

// Config returns a configuration for clients of the recording.
func (r *Recording) Config() *rest.Config {
	return &rest.Config{
		Host: "http://recorded-cluster.invalid", Transport: transport{r}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
	}
}

// transport answers requests in this process.
type transport struct{ *Recording }

// reply is a response before its conversion to HTTP.
type reply struct {
	status      int
	contentType string
	body        []byte
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close() // request bodies are ignored
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	answer, err := t.answer(r)
	if err != nil {
		answer = replyError(err)
	}
	return &http.Response{
		Status: strconv.Itoa(answer.status) + " " + http.StatusText(answer.status), StatusCode: answer.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {answer.contentType}},
		Body: io.NopCloser(bytes.NewReader(answer.body)), ContentLength: int64(len(answer.body)), Request: r,
	}, nil
}

// CancelRequest exists because client-go logs a warning for transports without it; answers are immediate.
func (transport) CancelRequest(*http.Request) {}

func replyJSON(value any) (reply, error) {
	data, err := json.Marshal(value)
	return reply{http.StatusOK, "application/json", data}, err
}

func replyError(err error) reply {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	data, err := json.Marshal(status)
	if err != nil {
		data = nil
	}
	return reply{int(status.Code), "application/json", data}
}

// NotRecorded is the reason of a refusal to show what a recording does not have. Its status is that of a forbidden
// request: in both cases the caller cannot know whether any objects exist.
const NotRecorded metav1.StatusReason = "NotRecorded"

func refuse(code int32, reason metav1.StatusReason, format string, a ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, a...)}}
}

// request is a parsed path of the API.
type request struct {
	group, version, namespace, plural, name, subresource string
	*http.Request
}

func (t transport) answer(r *http.Request) (reply, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return reply{}, refuse(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "this is a recording of a cluster, in which nothing can be written")
	}
	if found, ok, err := t.discover(r.URL.Path); ok {
		return found, err
	}
	q, ok := parsePath(r)
	if !ok {
		return reply{}, refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "the recording does not answer %s", r.URL.Path)
	}
	kind := t.find(q.group, q.plural)
	switch {
	case kind == nil || !kind.covers(q.namespace):
		where := ""
		if q.namespace != "" {
			where = " in namespace " + q.namespace
		}
		what := q.plural
		if q.group == "metrics.k8s.io" { // whose kinds are called like those of the core
			what = "metrics of " + what
		}
		return reply{}, refuse(http.StatusForbidden, NotRecorded, "%s were not recorded%s", what, where)
	case kind.Version != q.version:
		return reply{}, refuse(http.StatusForbidden, NotRecorded, "%s were recorded as %s", q.plural, strings.TrimPrefix(q.group+"/"+kind.Version, "/"))
	case r.URL.Query().Get("watch") == "true":
		return reply{}, refuse(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "this is a recording of a cluster: nothing changes that could be watched")
	case q.name == "":
		return t.list(kind, q)
	}
	o := kind.objects[objectKey{q.namespace, q.name}]
	switch {
	case o == nil:
		return reply{}, refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "%s %q was not recorded", kind.Kind, q.name)
	case q.plural == "pods" && q.subresource == "log":
		return t.log(o, q)
	case q.subresource != "" && q.subresource != "status":
		return reply{}, refuse(http.StatusForbidden, NotRecorded, "%s/%s were not recorded", q.plural, q.subresource)
	case samplecluster.WantsTable(r.Header.Get("Accept")):
		return replyJSON(samplecluster.Table(kind.APIResource, []*unstructured.Unstructured{o}, metav1.ListMeta{}, t.AsOf))
	}
	return replyJSON(o)
}

// parsePath parses /api/v1/… and /apis/GROUP/VERSION/….
func parsePath(r *http.Request) (request, bool) {
	q := request{Request: r}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		q.version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		q.group, q.version, parts = parts[1], parts[2], parts[3:]
	default:
		return q, false
	}
	if len(parts) >= 3 && parts[0] == "namespaces" && (q.group != "" || parts[2] != "status" && parts[2] != "finalize") {
		q.namespace, parts = parts[1], parts[2:]
	}
	for i, to := range []*string{&q.plural, &q.name, &q.subresource} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	return q, len(parts) <= 3
}

// list answers all pages in one: the whole recording is in memory.
func (t transport) list(kind *recordedKind, q request) (reply, error) {
	byLabel, err := labels.Parse(q.URL.Query().Get("labelSelector"))
	if err != nil {
		return reply{}, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(q.URL.Query().Get("fieldSelector"))
	if err != nil {
		return reply{}, apierrors.NewBadRequest(err.Error())
	}
	found := []*unstructured.Unstructured{}
	for _, o := range kind.sorted {
		if q.namespace != "" && o.GetNamespace() != q.namespace || !byLabel.Matches(labels.Set(o.GetLabels())) {
			continue
		}
		if !byField.Empty() && !byField.Matches(samplecluster.FieldSet(kind.APIResource, o)) {
			continue
		}
		found = append(found, o)
	}
	meta := metav1.ListMeta{ResourceVersion: "1"}
	if samplecluster.WantsTable(q.Header.Get("Accept")) {
		return replyJSON(samplecluster.Table(kind.APIResource, found, meta, t.AsOf))
	}
	return replyJSON(map[string]any{
		"apiVersion": schema.GroupVersion{Group: kind.Group, Version: kind.Version}.String(), "kind": kind.Kind + "List", "metadata": meta, "items": found,
	})
}

// log returns the log of a container, within the limits of the request.
func (t transport) log(pod *unstructured.Unstructured, q request) (reply, error) {
	query := q.URL.Query()
	key := logKey{pod.GetNamespace(), pod.GetName(), query.Get("container"), query.Get("previous") == "true"}
	if containers := containersOf(pod); key.container == "" && len(containers) > 0 {
		key.container = containers[len(containers)-1]
		if len(containers) > 1 {
			return reply{}, apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %s", key.pod, containers))
		}
	}
	which := "log"
	if key.previous {
		which = "previous log"
	}
	log, ok := t.logs[key]
	if !ok && waitsAfterEnd(pod, key.container) {
		key.previous = !key.previous
		log, ok = t.logs[key]
	}
	if !ok {
		return reply{}, refuse(http.StatusForbidden, NotRecorded, "the %s of container %s of pod %s was not recorded", which, key.container, key.pod)
	}
	limits, err := parseLogLimits(query.Get, t.AsOf)
	if err != nil {
		return reply{}, apierrors.NewBadRequest(err.Error())
	}
	return reply{http.StatusOK, "text/plain", limits.cut(log.lines)}, nil
}

// waitsAfterEnd reports whether a container waits to be started again. A kubelet then answers with the log of the run
// that ended, whether or not the previous log is requested, so a collector that requests it has both: kubectl
// cluster-info dump omits the previous one.
func waitsAfterEnd(pod *unstructured.Unstructured, container string) bool {
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		list, _, _ := unstructured.NestedSlice(pod.Object, "status", field)
		for _, entry := range list {
			status, _ := entry.(map[string]any)
			if status["name"] != container {
				continue
			}
			_, waits, _ := unstructured.NestedMap(status, "state", "waiting")
			_, ended, _ := unstructured.NestedMap(status, "lastState", "terminated")
			return waits && ended
		}
	}
	return false
}

// logLimits is the part of a log that a request selects.
type logLimits struct {
	since       time.Time
	tail, bytes int // -1: all
	timestamps  bool
}

func parseLogLimits(get func(string) string, now time.Time) (logLimits, error) {
	l := logLimits{tail: -1, bytes: -1, timestamps: get("timestamps") == "true"}
	seconds := -1
	for name, to := range map[string]*int{"tailLines": &l.tail, "limitBytes": &l.bytes, "sinceSeconds": &seconds} {
		text := get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return l, fmt.Errorf("invalid %s %q: must be a whole number that is not negative", name, text)
		}
		*to = int(n)
	}
	if seconds >= 0 {
		l.since = now.Add(-time.Duration(seconds) * time.Second)
	}
	if text := get("sinceTime"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return l, fmt.Errorf("invalid sinceTime: %w", err)
		}
		l.since = at
	}
	return l, nil
}

// cut returns the selected lines. A line without a time is kept, since its age is unknown.
func (l logLimits) cut(lines []logLine) []byte {
	var kept []logLine
	for _, line := range lines {
		if line.at.IsZero() || !line.at.Before(l.since) {
			kept = append(kept, line)
		}
	}
	if l.tail >= 0 && len(kept) > l.tail {
		kept = kept[len(kept)-l.tail:]
	}
	var text bytes.Buffer
	for _, line := range kept {
		if l.timestamps && !line.at.IsZero() {
			text.WriteString(line.at.UTC().Format(time.RFC3339Nano) + " ")
		}
		text.WriteString(line.text + "\n")
	}
	if l.bytes >= 0 && text.Len() > l.bytes {
		text.Truncate(l.bytes)
	}
	return text.Bytes()
}
