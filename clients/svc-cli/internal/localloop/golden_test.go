package localloop_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/looptest"
)

// The bytes of all that a run writes. A verification result also records the machine
// on which it was made, which the golden file leaves out.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"json", "failing", "patch-0.4"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := runLoop(t, looptest.Samples()[name])
			dir := filepath.Join("testdata", name)
			if *update {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range out.FileNames() {
				got := string(out.Files[file])
				for _, r := range out.Results {
					e := r.Provenance.Environment
					got = strings.NewReplacer(`"architecture": "`+e.Architecture, `"architecture": "any`, `"operating_system": "`+e.OperatingSystem, `"operating_system": "any`,
						`"runtime": "`+e.Runtime, `"runtime": "any`).Replace(got)
				}
				path := filepath.Join(dir, file)
				if *update {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if want := string(mustRead(t, path)); got != want {
					t.Errorf("%s:\n%s\nwant:\n%s", file, got, want)
				}
			}
			if have := fileNames(t, dir); !slices.Equal(have, out.FileNames()) {
				t.Errorf("golden files %v; want slices.Equal(have, out.FileNames())", have)
			}
		})
	}
}
