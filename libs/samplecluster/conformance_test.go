package samplecluster_test

import (
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/conformance"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	c := samplecluster.New(time.Now)
	t.Cleanup(c.Close)
	conformance.Run(t, c.Config())
}
