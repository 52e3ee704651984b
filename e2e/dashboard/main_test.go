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

// end stops the platform and reports whether all that the rows said and left behind is free of secrets.
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

// reportLeaks prints what a search found and reports whether that is nothing.
func reportLeaks(after string, leaks []string) bool {
	if len(leaks) > 0 {
		fmt.Printf("after %s, secrets were found: %s\n", after, strings.Join(leaks, "; "))
	}
	return len(leaks) == 0
}
