package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/trainer"
)

// The page shows the charts of the run, which are also files beside it; a hostile label stays text.
func TestReportShowsItsCharts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var res trainer.Result
	if err := json.Unmarshal([]byte(`{"model": "M", "confusion": {"labels": ["a<script>", "b"], "counts": [[3, 1], [0, 2]]}}`), &res.Report); err != nil {
		t.Fatal(err)
	}
	if err := writeReport(dir, res); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	chart, err := os.ReadFile(filepath.Join(dir, "predicted_actual.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), string(chart)) {
		t.Errorf("the page does not hold the chart: %s", page)
	}
	if strings.Contains(string(page), "<script") {
		t.Errorf("the page holds a script: %s", page)
	}
}
