// Package access keeps callers without the secret out of a stand-in. Loopback is no boundary on a machine with several
// users: each of them can connect to it.
package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mlp-platform/platform/libs/service/listener"
)

const message = "This server needs a credential; platform env prints it. Send it as a bearer, or as the password of basic authentication."

// Require forwards requests that carry the secret, and those for the health path. It accepts both forms that the
// products' own clients use: a bearer (MLFLOW_TRACKING_TOKEN, PREFECT_API_KEY), and basic authentication with the
// secret as the password under any name (MLFLOW_TRACKING_PASSWORD, PREFECT_API_AUTH_STRING), which a browser can send.
// An empty secret refuses every request.
func Require(secret, health string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(secret))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if reads && r.URL.Path == health {
			next.ServeHTTP(w, r)
			return
		}
		// Digests have a fixed length, so that the comparison does not reveal the secret's.
		got := sha256.Sum256([]byte(credential(r)))
		if secret == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			refuse(w)
			return
		}
		listener.Keep(r.Context(), "") // one secret for all clients
		next.ServeHTTP(w, r)
	})
}

// credential is the secret that a request bears, empty if it bears none or two.
func credential(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// refuse answers in the forms of both products: MLflow's clients read error_code and message, Prefect's read detail.
func refuse(w http.ResponseWriter) {
	body, err := json.Marshal(map[string]string{"error_code": "UNAUTHENTICATED", "message": message, "detail": message})
	if err != nil {
		panic(err) // strings alone
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="platform", Bearer`)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = w.Write(body) // the caller may have gone
}
