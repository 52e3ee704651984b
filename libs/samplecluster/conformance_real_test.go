//go:build realcluster

package samplecluster_test

import (
	"os"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// The suite has to pass on a real API server, or it checks the sample cluster for the wrong
// behaviour.
//
//	KUBECONFIG=… go test -tags realcluster -run TestRealCluster .
func TestRealCluster(t *testing.T) {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	runConformance(t, cfg)
}
