package modelrepo_test

import (
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

func TestMockGPUHours(t *testing.T) {
	t.Parallel()
	// SHA-256("JPCP:1") begins with 459d7f6a, which is 1_167_949_674.
	if got, want := modelrepo.MockGPUHours("jpcp", "1"), 4+float64(1_167_949_674%2000)/100; got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if modelrepo.MockGPUHours("JPCP", "1") == modelrepo.MockGPUHours("JPCP", "2") {
		t.Error("versions do not tell apart")
	}
}
