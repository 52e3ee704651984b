package field_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/mlp-platform/platform/libs/testenv"
)

// The limits of a glob keep the worst of them cheap: a patch can touch a thousand files.
func TestCostOfGlobs(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("a/", 500) + "b"
	for _, glob := range []string{
		strings.Repeat("**/a/", 50) + "c", strings.Repeat("*a", 127) + "c", "**/" + strings.Repeat("*a", 120) + "/c",
		strings.Repeat("{**/a,**/*}/", 4) + strings.Repeat("**/a/", 40) + "c", strings.Repeat("{*a*,**/*,a}/", 4) + strings.Repeat("**/*/", 36) + "c",
	} {
		for _, path := range []string{deep, strings.Repeat("a", 1000), strings.Repeat(strings.Repeat("a", 200)+"/", 5)} {
			if took := testenv.ProcessorTime(t, func() { _ = doublestar.MatchUnvalidated(glob, path) }); took > time.Second {
				t.Errorf("%.40s on %.20s: %v; want took <= time.Second", glob, path, took)
			}
		}
	}
}
