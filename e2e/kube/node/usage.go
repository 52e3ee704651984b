package node

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/mlp-platform/platform/e2e/kube/kubelet"
)

// summary is the part of the kubelet's statistics that is used.
type summary struct {
	Pods []struct {
		PodRef     struct{ Name, Namespace string }
		Containers []struct {
			Name string
			CPU  struct {
				Time           time.Time
				UsageNanoCores uint64
			}
			Memory struct{ WorkingSetBytes uint64 }
		}
	}
}

// Usage lists the usage of pods, as the kubelet measures it, in the form of the metrics API. It makes a node a source
// of package kubelet, whose server takes the place of metrics-server.
func (n *Node) Usage(namespace string) []map[string]any {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the kubelet signs its certificate itself
	}}
	resp, err := client.Get("https://" + n.address + ":10250/stats/summary")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var s summary
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return nil
	}
	var items []map[string]any
	for _, p := range s.Pods {
		if namespace != "" && p.PodRef.Namespace != namespace {
			continue
		}
		var containers []any
		at := time.Now()
		for _, c := range p.Containers {
			if c.CPU.Time.IsZero() {
				continue // not measured yet
			}
			at = c.CPU.Time
			containers = append(containers, map[string]any{"name": c.Name, "usage": map[string]any{
				"cpu": fmt.Sprintf("%dn", c.CPU.UsageNanoCores), "memory": fmt.Sprintf("%dKi", c.Memory.WorkingSetBytes>>10),
			}})
		}
		if len(containers) > 0 {
			items = append(items, map[string]any{
				"metadata":  map[string]any{"name": p.PodRef.Name, "namespace": p.PodRef.Namespace},
				"timestamp": at.UTC().Format(time.RFC3339), "window": "10s", "containers": containers,
			})
		}
	}
	return items
}

// Log has none: the API server queries the kubelet itself.
func (n *Node) Log(_, _, _ string, _ bool) ([]kubelet.Line, bool) { return nil, false }
