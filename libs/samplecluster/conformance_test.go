package samplecluster_test

import (
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/samplecluster"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	c := samplecluster.New(time.Now)
	t.Cleanup(c.Close)
	runConformance(t, c.Config())
}
