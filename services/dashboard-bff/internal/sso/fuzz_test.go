package sso

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzSafeReturnTo: whatever a link asks for, the browser stays on this origin and off the API.
func FuzzSafeReturnTo(f *testing.F) {
	for _, s := range []string{"/", "/models?x=1#y", "//x", `/\x`, "/%5cx", "/%2f/x", "/..//x", "/api/x", "/%61pi/x", "/;//x", "/?//x", "/#//x", "/%25%35%63x"} {
		f.Add(s)
	}
	origin, _ := url.Parse("https://dashboard.test/api/auth/sso/callback")
	f.Fuzz(func(t *testing.T, raw string) {
		got := safeReturnTo(raw)
		u, err := origin.Parse(got)
		if err != nil || u.Scheme != "https" || u.Host != "dashboard.test" || u.User != nil {
			t.Fatalf("%q becomes %q, which is %v (%v); want this origin", raw, got, u, err)
		}
		if got[0] != '/' || strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\r\n\t\x00") || u.Path == "/api" || strings.HasPrefix(u.Path, "/api/") {
			t.Fatalf("%q becomes %q", raw, got)
		}
		if again := safeReturnTo(got); again != got && again != "/" {
			t.Fatalf("%q becomes %q and then %q", raw, got, again)
		}
	})
}
