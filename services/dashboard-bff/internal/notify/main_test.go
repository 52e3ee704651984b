package notify_test

import (
	"testing"

	"github.com/mlp-platform/platform/libs/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
