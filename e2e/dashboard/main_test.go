//go:build e2e

package dashboard_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if w := shared.w; w != nil && !w.end() {
		code = 1
	}
	if walked.p != nil {
		walked.p.Kill()
		_ = os.RemoveAll(walked.dir)
	}
	os.Exit(code)
}

// end stops the platform and reports whether all that the rows said and left behind is free of secrets.
func (w *world) end() bool {
	clean := true
	if w.db != nil {
		if leaks := w.searchSecrets(); len(leaks) > 0 {
			fmt.Printf("after all rows, secrets were found: %s\n", strings.Join(leaks, "; "))
			clean = false
		}
		w.db.Close()
	}
	w.Kill()
	w.issuer.server.Close()
	_ = os.RemoveAll(w.dir)
	return clean
}
