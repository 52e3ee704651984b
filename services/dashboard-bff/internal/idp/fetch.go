package idp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// ErrUnreachable means that a provider did not answer, or not with a valid answer.
var ErrUnreachable = errors.New("the identity provider cannot be used")

const (
	fetchTimeout = 5 * time.Second
	maxFetch     = 1 << 20 // bytes of one answer
)

// newClient calls providers. Addresses come from the operator's trust file and from the documents that it leads to;
// neither a redirect nor a name that resolves to an address of the machine's own network fabric leads elsewhere.
func newClient(timeout time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: timeout, Control: refuseFabric}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = dialer.DialContext
	t.MaxIdleConnsPerHost = 8
	t.IdleConnTimeout = 30 * time.Second
	t.TLSHandshakeTimeout = timeout
	t.ResponseHeaderTimeout = timeout
	t.MaxResponseHeaderBytes = 64 << 10
	return &http.Client{
		Timeout: timeout, Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fabric are addresses at which no provider is: those of cloud metadata services are link-local, or these.
var fabric = []netip.Prefix{
	netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("192.0.0.192/32"),
}

// refuseFabric looks at the address that a name resolved to, right before the connection.
func refuseFabric(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := ap.Addr().Unmap()
	refused := ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified()
	for _, p := range fabric {
		refused = refused || p.Contains(ip)
	}
	if refused {
		return fmt.Errorf("%s is no address of an identity provider", ip)
	}
	return nil
}

// fetchJSON sends the request and reads its JSON object. The error wraps ErrUnreachable.
func fetchJSON(client *http.Client, req *http.Request) (map[string]json.RawMessage, error) {
	resp, err := client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) { // its text repeats the URL, which may have a query
			err = ue.Err
		}
		return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, req.URL.Redacted(), err)
	}
	defer resp.Body.Close()
	fail := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s %s", ErrUnreachable, req.URL.Redacted(), fmt.Sprintf(format, a...))
	}
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, fail("answered %d; redirects are not followed, so the trust file must name the final address", resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil, fail("answered %d", resp.StatusCode)
	}
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && strings.HasPrefix(media, "text/html") {
		return nil, fail("answered a page instead of JSON")
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxFetch+1))
	switch {
	case err != nil:
		return nil, fail("broke off: %v", err)
	case len(raw) > maxFetch:
		return nil, fail("answered more than %d KiB", maxFetch>>10)
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(raw, &doc); err != nil || doc == nil {
		return nil, fail("answered no JSON object")
	}
	return doc, nil
}

func getJSON(ctx context.Context, client *http.Client, address string) (map[string]json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	req.Header.Set("Accept", "application/json")
	return fetchJSON(client, req)
}
