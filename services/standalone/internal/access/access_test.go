package access_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mlp-platform/platform/services/standalone/internal/access"
)

func TestOnlyTheSecretOpens(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef0123456789abcdef"
	basic := func(user, password string) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	for name, c := range map[string]struct {
		secret, method, path string
		authorization        []string
		want                 int
	}{
		"no credential":                {secret, "GET", "/", nil, 401},
		"wrong bearer":                 {secret, "GET", "/", []string{"Bearer x" + secret}, 401},
		"empty bearer":                 {secret, "GET", "/", []string{"Bearer "}, 401},
		"the secret without a scheme":  {secret, "GET", "/", []string{secret}, 401},
		"another scheme":               {secret, "GET", "/", []string{"Digest " + secret}, 401},
		"bearer":                       {secret, "GET", "/", []string{"Bearer " + secret}, 200},
		"bearer in lower case":         {secret, "POST", "/x", []string{"bearer " + secret}, 200},
		"basic, any name":              {secret, "GET", "/", []string{basic("somebody", secret)}, 200},
		"basic, the secret as name":    {secret, "GET", "/", []string{basic(secret, "")}, 401},
		"basic, wrong password":        {secret, "GET", "/", []string{basic("a", "b")}, 401},
		"two credentials":              {secret, "GET", "/", []string{"Bearer " + secret, "Bearer x"}, 401},
		"health":                       {secret, "GET", "/health", nil, 200},
		"health, HEAD":                 {secret, "HEAD", "/health", nil, 200},
		"health is for reading":        {secret, "POST", "/health", nil, 401},
		"beside health":                {secret, "GET", "/health/", nil, 401},
		"below health":                 {secret, "GET", "/health/../x", nil, 401},
		"no secret configured":         {"", "GET", "/", []string{"Bearer "}, 401},
		"no secret configured, header": {"", "GET", "/", nil, 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := access.Require(c.secret, "/health", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			r := httptest.NewRequest(c.method, c.path, nil)
			r.Header["Authorization"] = c.authorization
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("got %d, want %d", w.Code, c.want)
			}
		})
	}
}
