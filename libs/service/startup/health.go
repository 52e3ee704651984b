package startup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// healthTimeout limits one health check: a prober has its own, usually longer.
const healthTimeout = 3 * time.Second

// usageError is a URL that cannot be queried.
type usageError struct{ detail string }

func (e *usageError) Error() string { return e.detail }

// CheckHealth queries a service's readiness: nil means ready, the error names what is not. A URL
// without a path means /readyz. Containers without a shell use it as their health check.
func CheckHealth(ctx context.Context, target string) error {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &usageError{fmt.Sprintf("%q is not an http or https URL", target)}
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/readyz"
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return &usageError{err.Error()}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("health check failed: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("%s answered %d%s", u.Redacted(), resp.StatusCode, failedChecks(resp.Body))
}

// failedChecks lists the checks of a /readyz body that failed, as ": store: fail: …; …".
func failedChecks(body io.Reader) string {
	var report struct {
		Checks  map[string]string `json:"checks"`
		Startup map[string]string `json:"startup_checks"` // where the contract says so
	}
	if json.NewDecoder(io.LimitReader(body, 64<<10)).Decode(&report) != nil {
		return ""
	}
	var failed []string
	for _, checks := range []map[string]string{report.Checks, report.Startup} {
		for _, name := range slices.Sorted(maps.Keys(checks)) {
			if strings.HasPrefix(checks[name], "fail") {
				failed = append(failed, name+": "+checks[name])
			}
		}
	}
	if len(failed) == 0 {
		return ""
	}
	return ": " + strings.Join(failed, "; ")
}

// loopbackAddr returns the address at which a service that listens on addr is reached on its own
// machine.
func loopbackAddr(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
