package harness

import (
	"net/http"
	"testing"
	"time"
)

// Dashboard is the dashboard of a running platform.
type Dashboard struct {
	*Platform
	URL      string // the dashboard's own origin
	ToolsURL string // the origin on which the tools' pages run
}

// StartDashboard starts a platform with its dashboard on free ports; extra are further NAME=value settings.
func StartDashboard(t testing.TB, extra ...string) *Dashboard {
	t.Helper()
	ports := FreePorts(t, 2)
	p := New(t, append([]string{"DASHBOARD_ADDR=" + ports[0], "DASHBOARD_TOOLS_ADDR=" + ports[1]}, extra...)...)
	p.Start(t, 3*time.Minute) // several times what two idle cores need
	return &Dashboard{Platform: p, URL: "http://" + ports[0], ToolsURL: "http://" + ports[1]}
}

// Login signs in with the password of a role, viewer or admin, and returns the session's token.
func (d *Dashboard) Login(t testing.TB, role string) string {
	t.Helper()
	password := d.Secret(t, "dashboard_"+role+"_password")
	a := Want(t, http.StatusOK, http.MethodPost, d.URL+"/api/auth/login", "", map[string]string{"password": password})
	token, _ := a.JSON(t)["token"].(string)
	if token == "" {
		t.Fatalf("login as %s: %s; want a token", role, a.Body)
	}
	return token
}
