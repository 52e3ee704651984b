package posture_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/planetest"
)

func TestMain(m *testing.M) { planetest.Main(m) }
