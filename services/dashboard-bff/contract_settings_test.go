package dashboard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	dashboard "github.com/mlp-platform/platform/services/dashboard-bff"
)

// loadWith reads a configuration of the required settings and others; name= takes one away.
func loadWith(others ...string) (dashboard.Config, error) {
	environ := required("postgres://localhost/none")
	for _, other := range others {
		name, _, _ := strings.Cut(other, "=")
		environ = slices.DeleteFunc(environ, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	}
	return dashboard.LoadConfig(append(environ, others...))
}

// TestContractEnvironment walks "Environment contract" and the start's refusals.
func TestContractEnvironment(t *testing.T) {
	t.Parallel()
	c, err := loadWith()
	if err != nil {
		t.Fatal(err)
	}
	if c.JWTTTLHours != 12 || !c.LocalLogin {
		t.Errorf("got a token lifetime of %d h and local login %v, want 12 and true", c.JWTTTLHours, c.LocalLogin)
	}
	for name, row := range map[string]struct{ setting, want string }{
		"DASHBOARD_VIEWER_PASSWORD is required":   {"DASHBOARD_VIEWER_PASSWORD=", "DASHBOARD_VIEWER_PASSWORD is not set"},
		"DASHBOARD_ADMIN_PASSWORD is required":    {"DASHBOARD_ADMIN_PASSWORD=", "DASHBOARD_ADMIN_PASSWORD is not set"},
		"DASHBOARD_JWT_SECRET is required":        {"DASHBOARD_JWT_SECRET=", "DASHBOARD_JWT_SECRET"},
		"DASHBOARD_JWT_SECRET has 32 bytes":       {"DASHBOARD_JWT_SECRET=" + strings.Repeat("s", 15) + strings.Repeat("t", 16), "at least 32"},
		"DASHBOARD_JWT_TTL_HOURS is a number":     {"DASHBOARD_JWT_TTL_HOURS=soon", "DASHBOARD_JWT_TTL_HOURS"},
		"DASHBOARD_JWT_TTL_HOURS is positive":     {"DASHBOARD_JWT_TTL_HOURS=0", "DASHBOARD_JWT_TTL_HOURS is 0"},
		"DASHBOARD_SECRET_KEY is required":        {"DASHBOARD_SECRET_KEY=", "DASHBOARD_SECRET_KEY is not set"},
		"DASHBOARD_SECRET_KEY is 32 bytes":        {"DASHBOARD_SECRET_KEY=c2hvcnQ=", "DASHBOARD_SECRET_KEY: entry 1"},
		"DASHBOARD_LOCAL_LOGIN off without SSO":   {"DASHBOARD_LOCAL_LOGIN=false", "no one could sign in"},
		"equal passwords":                         {"DASHBOARD_VIEWER_PASSWORD=" + adminPassword, "are equal"},
		"placeholder password":                    {"DASHBOARD_ADMIN_PASSWORD=changeme", "DASHBOARD_ADMIN_PASSWORD"},
		"public URL off loopback":                 {"DASHBOARD_ADDR=0.0.0.0:8099", "DASHBOARD_PUBLIC_URL is not set"},
		"tools URL off loopback":                  {"DASHBOARD_TOOLS_ADDR=0.0.0.0:8098", "DASHBOARD_TOOLS_URL is not set"},
		"insecure cookie beyond http on loopback": {"DASHBOARD_PUBLIC_URL=https://dashboard.example DASHBOARD_SESSION_COOKIE_SECURE=false", "DASHBOARD_SESSION_COOKIE_SECURE=false"},
		"unknown step-up action":                  {"DASHBOARD_STEP_UP_ACTIONS=flag.wrote", `"flag.wrote"`},
		"session store without Redis":             {"DASHBOARD_SESSION_STORE=redis", "DASHBOARD_SESSION_STORE"},
		"step-up mode":                            {"PLATFORM_IAM_STEP_UP=sometimes", "PLATFORM_IAM_STEP_UP"},
		"trusted proxies":                         {"DASHBOARD_TRUSTED_PROXIES=proxy", "DASHBOARD_TRUSTED_PROXIES"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := loadWith(strings.Fields(row.setting)...); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: got %v, want an error with %q", row.setting, err, row.want)
			}
		})
	}
	t.Run("all faults at once", func(t *testing.T) {
		t.Parallel()
		_, err := dashboard.LoadConfig(nil)
		for _, name := range []string{"DASHBOARD_VIEWER_PASSWORD", "DASHBOARD_ADMIN_PASSWORD", "DASHBOARD_JWT_SECRET", "DASHBOARD_SECRET_KEY", "PLATFORM_DATABASE_URL"} {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want %s named", err, name)
			}
		}
	})
	t.Run("the legacy DASHBOARD_TOKEN is removed", func(t *testing.T) {
		t.Parallel()
		if c, err := loadWith("DASHBOARD_TOKEN=x"); err != nil || strings.Contains(fmt.Sprintf("%+v", c), "DASHBOARD_TOKEN") {
			t.Errorf("got %v, want the variable not read", err)
		}
	})
}

// TestContractSettings walks "Settings": every variable of the BFF with its default.
func TestContractSettings(t *testing.T) {
	t.Parallel()
	c, err := loadWith()
	if err != nil {
		t.Fatal(err)
	}
	value := variables(reflect.ValueOf(c), map[string]any{})
	for name, want := range map[string]any{
		"DASHBOARD_ADDR": "127.0.0.1:8099", "DASHBOARD_TOOLS_ADDR": "127.0.0.1:8098", "DASHBOARD_PUBLIC_URL": "http://127.0.0.1:8099", "DASHBOARD_TOOLS_URL": "http://127.0.0.1:8098",
		"DASHBOARD_ALLOWED_HOSTS": []string{"127.0.0.1", "localhost", "127.0.0.1"}, "DASHBOARD_TRUSTED_PROXIES": []string(nil), "DASHBOARD_SESSION_STORE": "postgres",
		"DASHBOARD_SSO_SESSION_HOURS": 8, "DASHBOARD_SSO_IDLE_MINUTES": 120, "DASHBOARD_SESSION_COOKIE_SECURE": true, "DASHBOARD_LOCAL_TENANT": "default",
		"DASHBOARD_OPERATOR_TENANTS": []string{"default"}, "DASHBOARD_SOURCE_TIMEOUT": 2 * time.Second, "DASHBOARD_COPILOT_TIMEOUT": time.Minute,
		"DASHBOARD_STEP_UP_ACTIONS":    []string{"config.secret", "proxy.control_plane", "proxy.tracker", "flag.write", "model.promote", "assistant.decide"},
		"DASHBOARD_STREAM_MAX_CLIENTS": 5000, "DASHBOARD_PROXY_MAX_BODY": int64(33554432), "DASHBOARD_UPSTREAM_ALLOW": []string(nil), "DASHBOARD_ACT_KEY_FILE": "",
		"PLATFORM_IAM_CONFIG": "", "PLATFORM_IAM_STEP_UP": "off", "PLATFORM_IAM_STEP_UP_MAX_AGE": 900, "PLATFORM_DOCS_ROOT": "", "PLATFORM_SCHEDULER_MODE": "mock",
		"CONTROL_PLANE_URL": "http://localhost:18002", "SERVING_URL": "http://localhost:18001", "TRACKING_URI": "http://localhost:15000",
		"ORCHESTRATOR_API_URL": "http://localhost:14200/api", "BUS_BRIDGE_URL": "http://localhost:18003", "ASSISTANT_URL": "http://localhost:18004",
		"METRICS_STORE_URL": "", "DASHBOARDS_URL": "", "SERVING_DASHBOARD_URL": "", "CONTROL_PLANE_PUBLIC_URL": "", "SERVING_PUBLIC_URL": "", "ORCHESTRATOR_API_PUBLIC_URL": "",
		"BUS_BRIDGE_PUBLIC_URL": "", "ASSISTANT_PUBLIC_URL": "", "METRICS_STORE_PUBLIC_URL": "", "DASHBOARDS_PUBLIC_URL": "", "SERVING_DASHBOARD_PUBLIC_URL": "",
		"CONTROL_PLANE_TOKEN": "", "SERVING_TOKEN": "", "ASSISTANT_READONLY_KEY": "", "ASSISTANT_OPERATOR_KEY": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, known := value[name]
			if name == "DASHBOARD_ALLOWED_HOSTS" {
				slices.Sort(got.([]string))
				want = []string{"127.0.0.1", "127.0.0.1", "localhost"}
			}
			if !known || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %v (known: %v), want %v", got, known, want)
			}
		})
	}
	t.Run("session store redis with REDIS_URL", func(t *testing.T) {
		t.Parallel()
		if c, err := loadWith("REDIS_URL=redis://localhost:1/0"); err != nil || c.SessionStore != "redis" {
			t.Errorf("got %q, %v; want redis", c.SessionStore, err)
		}
	})
	t.Run("an address set to nothing is no service", func(t *testing.T) {
		t.Parallel()
		c, err := loadWith("BUS_BRIDGE_URL=", "CONTROL_PLANE_URL=", "SERVING_URL=", "TRACKING_URI=", "ORCHESTRATOR_API_URL=", "ASSISTANT_URL=")
		if got := c.BusBridgeURL + c.ControlPlaneURL + c.ServingURL + c.TrackingURI + c.OrchestratorURL + c.AssistantURL; err != nil || got != "" {
			t.Errorf("got %q, %v; want none", got, err)
		}
	})
	for _, name := range []string{
		"DASHBOARD_VIEWER_PASSWORD", "DASHBOARD_ADMIN_PASSWORD", "DASHBOARD_JWT_SECRET", "DASHBOARD_SECRET_KEY", "CONTROL_PLANE_TOKEN", "SERVING_TOKEN",
		"ASSISTANT_READONLY_KEY", "ASSISTANT_OPERATOR_KEY",
	} {
		t.Run(name+"_FILE", func(t *testing.T) {
			t.Parallel()
			secret := map[string]string{"DASHBOARD_JWT_SECRET": jwtSecret, "DASHBOARD_SECRET_KEY": secretKey}[name]
			if secret == "" {
				secret = "a-secret-from-a-file"
			}
			file := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := loadWith(name+"=", name+"_FILE="+file)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := variables(reflect.ValueOf(c), map[string]any{})[name].(interface{ Reveal() string })
			if !ok || got.Reveal() != secret {
				t.Errorf("got another value, want that of the file")
			}
			if printed := fmt.Sprintf("%+v", c); strings.Contains(printed, secret) {
				t.Error("the configuration prints the secret")
			}
		})
	}
}

// variables returns the values of a configuration by the names of their variables.
func variables(v reflect.Value, into map[string]any) map[string]any {
	for i := range v.NumField() {
		field, name := v.Type().Field(i), v.Type().Field(i).Tag.Get("env")
		switch {
		case field.Anonymous:
			variables(v.Field(i), into)
		case name != "" && name != "-":
			into[name] = v.Field(i).Interface()
		}
	}
	return into
}
