package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCompleteModels(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"registered_models":[{"name":"jpcp"},{"name":"j$(reboot)"},{"name":"j k"},{"name":"--json"},{"name":"j.p-c_p2"},{"name":"mack"}]}`)
	}))
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "TRACKING_URI": srv.URL}
	for line, want := range map[string]string{
		"predict j":    "J.P-C_P2\nJPCP\n",
		"predict ":     "J.P-C_P2\nJPCP\nMACK\n",
		"mod":          "models\nmodelrepo\n",
		"models ":      "list\ninfo\ndiff\nlineage\ncost\nhistory\nat\nrollback\n",
		"retrain --du": "--dummy\n",
		"--ver":        "--verbose\n--version\n",
	} {
		if r := runMLP(t, vars, "", append([]string{"__complete", "--"}, strings.Split(line, " ")...)...); r.out != want || r.code != 0 {
			t.Errorf("%q: exit %d, %q, want %q (%s)", line, r.code, r.out, want, r.err)
		}
	}
}
