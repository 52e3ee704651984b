//go:build e2e && full

package assistant_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mlp-platform/platform/e2e/harness"
)

// bundled are the faults that are asked about in recordings: of what pods wrote, what a kernel did, and what events tell.
var bundled = map[string]bool{"crash": true, "oom": true, "init": true, "image": true, "probe": true}

// capture holds the data that a collector reads from a cluster, once for all layouts.
type capture struct {
	lists map[string][]byte // by path of the API, as JSON
	pods  []corev1.Pod
	logs  []capturedLog
}

type capturedLog struct {
	pod       *corev1.Pod
	container string
	previous  bool
	text      string // with a time before each line
}

// plain is the log without the times.
func (l capturedLog) plain() string {
	var b strings.Builder
	for line := range strings.Lines(l.text) {
		_, text, _ := strings.Cut(line, " ")
		b.WriteString(text)
	}
	return b.String()
}

// capturedKinds are the kinds that every collector reads, by API group.
var capturedKinds = map[string][]string{
	"api/v1":       {"pods", "events", "services", "replicationcontrollers", "configmaps", "persistentvolumeclaims"},
	"apis/apps/v1": {"deployments", "replicasets", "daemonsets", "statefulsets"},
}

func (w *world) capture(ctx context.Context, namespaces []string) (*capture, error) {
	c := &capture{lists: map[string][]byte{}}
	paths := []string{"api/v1/nodes", "api/v1/namespaces"}
	for _, ns := range namespaces {
		for group, kinds := range capturedKinds {
			for _, kind := range kinds {
				paths = append(paths, group+"/namespaces/"+ns+"/"+kind)
			}
		}
	}
	for _, path := range paths {
		raw, err := w.Client.Discovery().RESTClient().Get().AbsPath("/" + path).DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		c.lists[path] = raw
	}
	for _, ns := range namespaces {
		list, err := w.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		c.pods = append(c.pods, list.Items...)
	}
	for i := range c.pods {
		pod := &c.pods[i]
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			for _, previous := range []bool{false, true} {
				text, err := w.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, Previous: previous, Timestamps: true}).DoRaw(ctx)
				if err == nil { // a container that never ran has none
					c.logs = append(c.logs, capturedLog{pod, container.Name, previous, string(text)})
				}
			}
		}
	}
	return c, nil
}

// namespaced calls write for each list of a namespace.
func (c *capture) namespaced(write func(namespace, group, kind string, raw []byte) error) error {
	for path, raw := range c.lists {
		group, rest, ok := strings.Cut(path, "/namespaces/")
		if !ok {
			continue
		}
		namespace, kind, _ := strings.Cut(rest, "/")
		if err := write(namespace, group, kind, raw); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// writeFile writes a file of a recording, with its folders.
func writeFile(content []byte, path ...string) error {
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}

// writeDump writes what kubectl cluster-info dump --output-directory does: lists as JSON, and one file of logs for each pod,
// without those of earlier runs.
func (c *capture) writeDump(dir string) error {
	dumped := map[string]string{"pods": "pods", "events": "events", "services": "services", "replicationcontrollers": "replication-controllers",
		"deployments": "deployments", "replicasets": "replicasets", "daemonsets": "daemonsets"}
	err := c.namespaced(func(namespace, _, kind string, raw []byte) error {
		if dumped[kind] == "" {
			return nil
		}
		return writeFile(raw, dir, namespace, dumped[kind]+".json")
	})
	logs := map[string]string{}
	for _, l := range c.logs {
		if !l.previous {
			of := fmt.Sprintf("container %s of pod %s/%s ====\n", l.container, l.pod.Namespace, l.pod.Name)
			logs[filepath.Join(l.pod.Namespace, l.pod.Name)] += "==== START logs for " + of + l.plain() + "==== END logs for " + of
		}
	}
	for path, text := range logs {
		err = errors.Join(err, writeFile([]byte(text), dir, path, "logs.txt"))
	}
	return errors.Join(err, writeFile(c.lists["api/v1/nodes"], dir, "nodes.json"))
}

// writeMustGather writes what oc adm must-gather does: YAML in folders by namespace and group, and logs with times.
func (c *capture) writeMustGather(dir string) error {
	root := filepath.Join(dir, "must-gather.local.4711", "quay-io-openshift-must-gather-sha256-0f3a9c2b")
	err := c.namespaced(func(namespace, group, kind string, raw []byte) error {
		text, err := yaml.JSONToYAML(raw)
		if err != nil {
			return err
		}
		folder := map[string]string{"api/v1": "core", "apis/apps/v1": "apps"}[group]
		return writeFile(text, root, "namespaces", namespace, folder, kind+".yaml")
	})
	for i := range c.pods {
		pod := c.pods[i].DeepCopy()
		pod.APIVersion, pod.Kind = "v1", "Pod"
		text, wrong := yaml.Marshal(pod)
		err = errors.Join(err, wrong, writeFile(text, root, "namespaces", pod.Namespace, "pods", pod.Name, pod.Name+".yaml"))
	}
	for _, l := range c.logs {
		file := map[bool]string{false: "current.log", true: "previous.log"}[l.previous]
		err = errors.Join(err, writeFile([]byte(l.text), root, "namespaces", l.pod.Namespace, "pods", l.pod.Name, l.container, l.container, "logs", file))
	}
	nodes, wrong := yaml.JSONToYAML(c.lists["api/v1/nodes"])
	return errors.Join(err, wrong, writeFile(nodes, root, "cluster-scoped-resources", "core", "nodes.yaml"), writeFile([]byte("must-gather\n4.20\n"), root, "version"))
}

// writeSupportBundle writes what Troubleshoot does: folders by kind with a file for each namespace, in one archive.
func (c *capture) writeSupportBundle(archive string) error {
	dir := archive + ".d"
	root := filepath.Join(dir, "support-bundle-2026-01-02T03_04_05", "cluster-resources")
	err := c.namespaced(func(namespace, _, kind string, raw []byte) error {
		if kind == "persistentvolumeclaims" {
			kind = "pvcs"
		}
		return writeFile(raw, root, kind, namespace+".json")
	})
	for _, l := range c.logs {
		file := l.container + map[bool]string{false: ".log", true: "-previous.log"}[l.previous]
		err = errors.Join(err, writeFile([]byte(l.plain()), root, "pods", "logs", l.pod.Namespace, l.pod.Name, file))
	}
	err = errors.Join(err, writeFile(c.lists["api/v1/nodes"], root, "nodes.json"), writeFile(c.lists["api/v1/namespaces"], root, "namespaces.json"))
	return errors.Join(err, archiveFolder(dir, archive))
}

// archiveFolder packs a folder as tar.gz.
func archiveFolder(dir, archive string) error {
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(out)
	to := tar.NewWriter(packed)
	return errors.Join(to.AddFS(os.DirFS(dir)), to.Close(), packed.Close(), out.Close())
}

// testBundles: what collectors of support data write of the node leads to the same first cause as the cluster itself.
func testBundles(t *testing.T, w *world) {
	began := time.Now()
	var faults []realFault
	var namespaces []string
	for _, f := range realFaults() {
		if bundled[f.name] {
			faults, namespaces = append(faults, f), append(namespaces, f.name)
			if err := retryUntil(time.Minute, f.shows(w, f.name)); err != nil { // a container that is started again shows nothing for a moment
				t.Fatal(err)
			}
		}
	}
	c, err := w.capture(t.Context(), namespaces)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	recordings := map[string]string{"kubectl cluster-info dump": filepath.Join(dir, "dump"), "must-gather": filepath.Join(dir, "must-gather"), "support bundle": filepath.Join(dir, "support-bundle.tar.gz")}
	if err := errors.Join(c.writeDump(recordings["kubectl cluster-info dump"]), c.writeMustGather(recordings["must-gather"]), c.writeSupportBundle(recordings["support bundle"])); err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		question := "what is wrong in namespace " + f.name + "?"
		k := w.talk(t, f.name)
		k.session = "bundles-" + f.name
		live := k.say(question).text
		for layout, from := range recordings {
			text, err := askRecording(t, from, f.name, question)
			if err != nil {
				t.Errorf("%s, %s: %v", f.name, layout, err)
				continue
			}
			if got, want := firstHeading(text), firstHeading(live); got != want || want == "" {
				t.Errorf("%s, %s: the first cause is %q; want %q as live:\n%s", f.name, layout, got, want, text)
			}
			if verdict := f.judge(text); verdict != "right" {
				t.Errorf("%s, %s: %s:\n%s", f.name, layout, verdict, text)
			}
		}
	}
	t.Logf("%d faults in %d recordings took %s", len(faults), len(recordings), time.Since(began).Round(100*time.Millisecond))
}

// askRecording runs assistant diagnose.
func askRecording(t *testing.T, from, namespace, question string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Bin(t, "assistant"), "diagnose", "--from", from, "--namespace", namespace, "--output", "json", question)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, errs.String())
	}
	var a struct {
		Answer  string
		NotRead []string `json:"not_read"`
	}
	if err := json.Unmarshal(out, &a); err != nil {
		return "", err
	}
	if len(a.NotRead) > 0 {
		return "", fmt.Errorf("not read: %v", a.NotRead)
	}
	return a.Answer, nil
}

var heading = regexp.MustCompile(`(?m)^\*\*1\. (.+)\*\*$`)

// firstHeading is the object and the class of an answer's first finding.
func firstHeading(text string) string {
	found := heading.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return found[1]
}
