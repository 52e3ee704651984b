package localloop_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/looptest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
)

var update = flag.Bool("update", false, "rewrite the sample loops and golden files")

const sampleDir = "../samples/files/local-loop"

// The sample loops are the ones that the tests here take apart.
func TestSampleLoopsAreTheTestsLoops(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for folder, l := range looptest.Samples() {
		if *update {
			looptest.Samples()[folder].Write(t, filepath.Join(sampleDir, folder))
		}
		for name, text := range l.Render() {
			want["local-loop/"+folder+"/"+name] = text
		}
	}
	if *update {
		return // the embedded copy is older
	}
	var have []string
	for _, name := range samples.List() {
		if strings.HasPrefix(name, "local-loop/") {
			have = append(have, name)
			if string(samples.File(name)) != want[name] {
				t.Errorf("%s differs; go test -update ./internal/localloop", name)
			}
		}
	}
	if names := slices.Sorted(maps.Keys(want)); !slices.Equal(have, names) {
		t.Errorf("samples %v\nwant %v; want slices.Equal(have, names)", have, names)
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
