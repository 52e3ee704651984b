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
		if !reportLeaks("the walks", searchWalked()) {
			code = 1
		}
		walked.p.Kill()
		_ = os.RemoveAll(walked.dir)
	}
	os.Exit(code)
}

// end stops the platform and reports whether all output of the rows, and everything left behind, is free of secrets.
func (w *world) end() bool {
	clean := true
	if w.db != nil {
		clean = reportLeaks("all rows", w.searchSecrets())
		w.db.Close()
	}
	w.Kill()
	w.issuer.server.Close()
	_ = os.RemoveAll(w.dir)
	return clean
}

// reportLeaks prints the leaks of a search and reports whether there are none.
func reportLeaks(after string, leaks []string) bool {
	if len(leaks) > 0 {
		fmt.Printf("after %s, secrets were found: %s\n", after, strings.Join(leaks, "; "))
	}
	return len(leaks) == 0
}
