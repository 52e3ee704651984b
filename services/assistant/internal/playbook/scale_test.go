package playbook_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// BenchmarkDiagnose compares, for clusters of 5,000 pods, a diagnosis and its answer with the decoding of the same
// objects: reading is the larger part of a question's cost.
func BenchmarkDiagnose(b *testing.B) {
	for _, shape := range clusterShapes() {
		b.Run(shape.Name, func(b *testing.B) {
			s := newCluster(shape)
			read := measureDecoding(b, s)
			b.ReportAllocs()
			found := 0
			for b.Loop() {
				all := playbook.Diagnose(s, "")
				engine.Answer(s, all)
				found = len(all)
			}
			b.ReportMetric(float64(found), "findings")
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(read), "of-decoding")
		})
	}
}

// BenchmarkGateways diagnoses 5,000 routes at 50 gateways with as many listeners as a gateway may have.
func BenchmarkGateways(b *testing.B) {
	base := readSnapshot(b, "gateway")
	s := &engine.Snapshot{Taken: base.Taken, Unread: map[string]bool{}, GatewayClasses: base.GatewayClasses, Services: base.Services, EndpointSlices: base.EndpointSlices, Namespaces: base.Namespaces, Pods: base.Pods}
	for i := range 50 {
		g := base.Gateways[0]
		g.Name, g.Spec.Listeners = fmt.Sprint("gateway-", i), nil
		for j := range 64 {
			l := base.Gateways[0].Spec.Listeners[0]
			l.Name, l.Hostname = fmt.Sprint("l-", j), fmt.Sprintf("*.team-%d.example", j)
			g.Spec.Listeners = append(g.Spec.Listeners, l)
		}
		s.Gateways = append(s.Gateways, g)
	}
	for i := range 5000 {
		r := base.Routes[0]
		r.Name, r.Spec.Hostnames = fmt.Sprint("route-", i), []string{fmt.Sprintf("a.team-%d.example", i%64)}
		r.Spec.ParentRefs = []gatewayapi.ParentRef{{Name: fmt.Sprint("gateway-", i%50), Namespace: new("infra")}}
		s.Routes = append(s.Routes, r)
	}
	for b.Loop() {
		playbook.Diagnose(s, "")
	}
}

// measureDecoding returns the time to decode the objects of a snapshot from JSON.
func measureDecoding(b *testing.B, s *engine.Snapshot) time.Duration {
	b.Helper()
	var total time.Duration
	for _, list := range listFields(s) {
		raw, err := json.Marshal(list.Interface())
		if err != nil {
			b.Fatal(err)
		}
		runtime.GC() // garbage of the test, not of the measured code
		start := time.Now()
		if err := json.Unmarshal(raw, reflect.New(list.Type()).Interface()); err != nil {
			b.Fatal(err)
		}
		total += time.Since(start)
	}
	return total
}
