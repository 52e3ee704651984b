package change_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
)

// argoWire serves Argo CD applications in front of a cluster that lacks them.
type argoWire struct {
	next         http.RoundTripper
	applications string // the list; empty: forbidden
}

const argoGroup = `{"name":"argoproj.io","versions":[{"groupVersion":"argoproj.io/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"argoproj.io/v1alpha1","version":"v1alpha1"}}`

func (w argoWire) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(code int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
	}
	switch r.URL.Path {
	case "/apis":
		resp, err := w.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		return answer(http.StatusOK, string(bytes.Replace(body, []byte(`"groups":[`), []byte(`"groups":[`+argoGroup+","), 1)))
	case "/apis/argoproj.io/v1alpha1":
		return answer(http.StatusOK, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"argoproj.io/v1alpha1","resources":[{"name":"applications","kind":"Application","namespaced":true,"verbs":["get","list"]}]}`)
	case "/apis/argoproj.io/v1alpha1/applications":
		if w.applications == "" {
			return answer(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		}
		return answer(http.StatusOK, `{"kind":"ApplicationList","apiVersion":"argoproj.io/v1alpha1","items":[`+w.applications+`]}`)
	}
	return w.next.RoundTrip(r)
}

// TestManagedByArgoCD: a proposal to change an object that Argo CD manages states what will happen to the change.
func TestManagedByArgoCD(t *testing.T) {
	application := func(policy, resource string) string {
		return `{"metadata":{"namespace":"argocd","name":"shop"},"spec":{"destination":{"server":"https://kubernetes.default.svc","namespace":"shop"},"syncPolicy":` + policy +
			`},"status":{"resources":[{"group":"apps","version":"v1","kind":"Deployment","namespace":"shop","name":"` + resource + `"}]}}`
	}
	for name, c := range map[string]struct{ applications, want string }{
		"heals itself":     {application(`{"automated":{"selfHeal":true}}`, "cart"), "The Argo CD application shop manages this and heals itself, so it will take the change back: change it at its source."},
		"syncs itself":     {application(`{"automated":{}}`, "cart"), "takes the change back with its next sync"},
		"switched off":     {application(`{"automated":{"selfHeal":true,"enabled":false}}`, "cart"), "a sync takes the change back"},
		"manages another":  {application(`{"automated":{"selfHeal":true}}`, "web"), ""},
		"may not be asked": {"", "Whether Argo CD manages this could not be read."},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.propose("kubectl scale deploy/cart --replicas=5") // opens the connection
				w.wire.next = argoWire{w.wire.next, c.applications}
				testenv.Advance(31 * time.Second) // the API discovery is refreshed
				for _, line := range []string{"kubectl scale deploy/cart --replicas=3", "kubectl set env deployment/cart MODE=fast", "kubectl delete deployment/cart"} {
					notes := strings.Join(w.propose(line).Verdict.Notes, " ")
					if c.want == "" && strings.Contains(notes, "Argo") || !strings.Contains(notes, c.want) {
						t.Errorf("%s: notes %q; want %q", line, notes, c.want)
					}
				}
			})
		})
	}
}
