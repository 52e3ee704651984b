//go:build e2e && full

package node_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/kube"
	"github.com/mlp-platform/platform/e2e/kube/node"
)

// TestNode: a pod runs on the node and its log can be read through the API server; after a node has ended, the machine
// has no interface, mount or cgroup of it.
func TestNode(t *testing.T) {
	t.Parallel()
	c := kube.StartWithoutNodes(t)
	t.Cleanup(c.Stop)
	var name string
	t.Run("runs a pod", func(t *testing.T) {
		n := node.Start(t, c)
		name = n.Name
		if err := c.Namespace(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(t.Context(), "shop", `
apiVersion: v1
kind: Pod
metadata: {name: hello}
spec: {restartPolicy: Never, containers: [{name: hello, image: "`+node.Busybox+`", command: [/bin/sh, -c, "echo hello from $(hostname)"]}]}
`); err != nil {
			t.Fatal(err)
		}
		err := kube.Until(func() error {
			p, err := c.Client.CoreV1().Pods("shop").Get(t.Context(), "hello", metav1.GetOptions{})
			if err == nil && p.Status.Phase != corev1.PodSucceeded {
				err = fmt.Errorf("it is %s: %+v", p.Status.Phase, p.Status.ContainerStatuses)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		log, err := c.Client.CoreV1().Pods("shop").GetLogs("hello", &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil || string(log) != "hello from hello\n" {
			t.Errorf("got log %q, %v, want hello from hello", log, err)
		}
	})
	for _, look := range [][]string{{"ip", "-o", "link"}, {"cat", "/proc/mounts"}} {
		out, err := exec.Command(look[0], look[1:]...).CombinedOutput()
		if err != nil || strings.Contains(string(out), strings.TrimPrefix(name, "node-")) {
			t.Errorf("%v after the end of %s: %v\n%s", look, name, err, out)
		}
	}
	if left, err := filepath.Glob("/sys/fs/cgroup/*/" + name); err != nil || len(left) > 0 {
		t.Errorf("cgroups %v, %v are left, want none", left, err)
	}
}
