// Package kubelet simulates the kubelets of a cluster: from the programs of pods it writes their statuses and events,
// and it serves their logs and, as the metrics API, their usage. No container runs.
package kubelet

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// round is the interval at which all pods are checked.
const round = 150 * time.Millisecond

// Kubelet simulates all kubelets of a cluster.
type Kubelet struct {
	client   kubernetes.Interface
	listener net.Listener

	mu   sync.Mutex
	told map[types.UID]outcome // guarded by mu: the last outcome written for each pod
	pods []corev1.Pod          // guarded by mu: as of the last round
	more Source                // guarded by mu
}

// Source provides pods that another component simulates, which this kubelet serves with its own.
type Source interface {
	// Log returns the log of a container, or false for an unknown one.
	Log(namespace, pod, container string, previous bool) ([]Line, bool)
	// Usage lists items of the metrics API; the namespace may be empty, for all.
	Usage(namespace string) []map[string]any
}

// Line is one line of a log, without its line feed.
type Line struct {
	At   time.Time
	Text string
}

// Serve adds the pods of a source.
func (k *Kubelet) Serve(s Source) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.more = s
}

func (k *Kubelet) others() Source {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.more
}

// New listens on a free loopback port.
func New(client kubernetes.Interface) (*Kubelet, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	return &Kubelet{client: client, listener: l, told: map[types.UID]outcome{}}, err
}

// Port is the port that serves logs, over TLS.
func (k *Kubelet) Port() int { return k.listener.Addr().(*net.TCPAddr).Port }

// Run works until ctx ends.
func (k *Kubelet) Run(ctx context.Context) error {
	server := &http.Server{Handler: k.handler(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(tls.NewListener(k.listener, testCertificate())) }()
	tick := time.NewTicker(round)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return errors.Join(server.Close(), ignoreClosed(<-served))
		case <-tick.C:
			k.look(ctx)
		}
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// testCertificate is the one built into httptest.
func testCertificate() *tls.Config {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates}
}

// look updates the status of every pod. The next round repairs a failure.
func (k *Kubelet) look(ctx context.Context) {
	// From the watch cache: this query is frequent.
	list, err := k.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0", LabelSelector: "e2e=program"})
	if err != nil {
		return
	}
	k.mu.Lock()
	k.pods = list.Items
	k.mu.Unlock()
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Annotations[Annotation] == "" || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
			continue
		}
		o, err := k.judge(ctx, pod)
		if err != nil {
			o = outcome{status: corev1.PodStatus{Phase: corev1.PodPending, Message: err.Error()}, told: err.Error()}
		}
		k.mu.Lock()
		known, seen := k.told[pod.UID]
		k.mu.Unlock()
		if seen && known.told == o.told {
			continue
		}
		if k.write(ctx, pod, o) != nil {
			continue
		}
		k.mu.Lock()
		k.told[pod.UID] = o
		k.mu.Unlock()
	}
}

// write stores an outcome in the cluster.
func (k *Kubelet) write(ctx context.Context, pod *corev1.Pod, o outcome) error {
	now := pod.DeepCopy()
	now.Status = o.status
	now.Status.QOSClass = pod.Status.QOSClass
	if _, err := k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for i, e := range o.events {
		kind := corev1.EventTypeWarning
		if e.reason == "Killing" {
			kind = corev1.EventTypeNormal
		}
		at := metav1.Now()
		_, err := k.client.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x%x", pod.Name, at.UnixNano(), i), Namespace: pod.Namespace},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, FieldPath: e.field},
			Reason:         e.reason, Message: e.message, Type: kind, Count: restarts, FirstTimestamp: at, LastTimestamp: at,
			Source: corev1.EventSource{Component: "kubelet", Host: pod.Spec.NodeName},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsForbidden(err) { // a namespace that is being deleted accepts none
			return err
		}
	}
	return nil
}

func (k *Kubelet) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLog)
	k.routeMetrics(mux)
	return mux
}

// serveLog answers as a kubelet does.
func (k *Kubelet) serveLog(w http.ResponseWriter, r *http.Request) {
	if more := k.others(); more != nil {
		if lines, ok := more.Log(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), r.URL.Query().Get("previous") == "true"); ok {
			serveLines(w, r.URL.Query(), lines)
			return
		}
	}
	text, ok := k.log(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), r.URL.Query().Get("previous") == "true")
	if !ok {
		http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", r.PathValue("container"), r.PathValue("pod")), http.StatusBadRequest)
		return
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var tail int
	if _, err := fmt.Sscan(r.URL.Query().Get("tailLines"), &tail); err == nil && tail < len(lines) {
		lines = lines[len(lines)-tail:]
	}
	stamped := r.URL.Query().Get("timestamps") == "true"
	for _, l := range lines {
		if stamped {
			l = time.Now().UTC().Format(time.RFC3339Nano) + " " + l
		}
		_, _ = w.Write([]byte(l)) // the reader may be gone
	}
}

// serveLines answers with the lines that a query selects.
func serveLines(w http.ResponseWriter, query url.Values, lines []Line) {
	since := time.Time{}
	if seconds, err := strconv.ParseInt(query.Get("sinceSeconds"), 10, 64); err == nil {
		since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	if at, err := time.Parse(time.RFC3339, query.Get("sinceTime")); err == nil {
		since = at
	}
	lines = slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.At.Before(since) })
	if tail, err := strconv.Atoi(query.Get("tailLines")); err == nil && tail < len(lines) {
		lines = lines[len(lines)-tail:]
	}
	var b bytes.Buffer
	for _, l := range lines {
		if query.Get("timestamps") == "true" {
			b.WriteString(l.At.UTC().Format(time.RFC3339Nano) + " ")
		}
		b.WriteString(l.Text + "\n")
	}
	if limit, err := strconv.Atoi(query.Get("limitBytes")); err == nil && limit < b.Len() {
		b.Truncate(limit)
	}
	_, _ = b.WriteTo(w) // the reader may be gone
}

// log returns a container's output in the current run, or with previous in the one before it.
func (k *Kubelet) log(namespace, pod, container string, previous bool) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.pods {
		p := &k.pods[i]
		if p.Namespace != namespace || p.Name != pod {
			continue
		}
		o := k.told[p.UID]
		for _, s := range append(o.status.InitContainerStatuses, o.status.ContainerStatuses...) {
			if s.Name == container {
				return o.logs[container], !previous || s.RestartCount > 0
			}
		}
	}
	return "", !previous
}
