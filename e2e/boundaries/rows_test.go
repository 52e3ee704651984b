package boundaries

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// acceptanceRow matches a test of a row of the evidence API's acceptance table.
var acceptanceRow = regexp.MustCompile(`(?m)^func TestRow(\d\d)\w*\(t \*testing\.T\)`)

// TestEveryAcceptanceRowHasATest: the evidence API, svc and the clients share one acceptance table, and each of its
// rows has a test with its number.
func TestEveryAcceptanceRowHasATest(t *testing.T) {
	t.Parallel()
	const rows = 77
	seen := map[int][]string{}
	for _, module := range []string{"services/evidence-api", "clients/svc-cli", "clients/go/controltower"} {
		err := filepath.WalkDir(filepath.Join("../..", module), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range acceptanceRow.FindAllSubmatch(text, -1) {
				n, _ := strconv.Atoi(string(m[1]))
				seen[n] = append(seen[n], path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= rows; n++ {
		if len(seen[n]) == 0 {
			t.Errorf("no test is named TestRow%02d; want len(seen[n]) != 0", n)
		}
	}
	for n, paths := range seen {
		if n < 1 || n > rows {
			t.Errorf("the acceptance table has no row %d, which %s names; want n >= 1 && n <= rows", n, paths[0])
		}
	}
}
