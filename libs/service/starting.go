package service

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
)

// serveStarting answers while the service waits for dependencies that it cannot start
// without. Only probes have an answer: routes are still being added, and echo's router does
// not allow both.
func (s *Server) serveStarting(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.Header()["Cache-Control"] = noStore
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // fails only on a connection that is gone
	}
	switch r.URL.Path {
	case "/livez":
		answer(http.StatusOK, map[string]string{"status": "alive"})
	case "/readyz":
		checks := map[string]string{"startup": Check{Fail, s.waitsFor()}.String()}
		answer(http.StatusServiceUnavailable, s.readyBody(false, checks))
	default:
		_ = problem.Unavailable.New("The service is starting: "+s.waitsFor()+".").After(time.Second).Write(w, r)
	}
}

func (s *Server) waitsFor() string {
	if why := s.waiting.Load(); why != nil && *why != "" {
		return *why
	}
	return "not everything is ready yet"
}
