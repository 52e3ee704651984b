package controltower

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Client is a client of one server. It is safe for concurrent use.
type Client struct {
	endpoint endpoint
	token    func() string // a function, so that no way to print a Client shows it
	timeout  time.Duration
	retry    RetryPolicy

	wait   func(context.Context, time.Duration) error // until a retry
	jitter func() float64                             // [0,1)
}

// Option changes how a Client works.
type Option func(*Client) error

// tokenPattern leaves the length, 32 to 4096, to its caller: a repeat count ends at 1,000.
var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)

// New makes a client of the server at baseURL, http://127.0.0.1:PORT or
// http://localhost:PORT. The token is the server's SVC_CONTROL_TOWER_TOKEN. The timeout
// applies to a whole exchange, from connect to last byte; for a stream, to its opening.
// Nothing is sent yet; a fault is a *ConfigError.
func New(baseURL, token string, timeout time.Duration, options ...Option) (*Client, error) {
	at, err := parseEndpoint(baseURL)
	if err != nil {
		return nil, err
	}
	if len(token) < 32 || len(token) > 4096 || !tokenPattern.MatchString(token) {
		return nil, misuseError("the token must be 32 to 4096 characters from letters, digits and -._~, " +
			"the value the server has in SVC_CONTROL_TOWER_TOKEN")
	}
	if timeout <= 0 {
		return nil, misuseError("the timeout must be above 0")
	}
	c := &Client{endpoint: at, token: func() string { return token }, timeout: timeout, retry: RetryPolicy{MaxAttempts: 1}, wait: sleepFor, jitter: rand.Float64}
	for _, o := range options {
		if err := o(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// String names the server, never the token.
func (c *Client) String() string { return "controltower.Client(http://" + c.endpoint.authority + ")" }

// GoString keeps the token out of %#v too.
func (c *Client) GoString() string { return c.String() }

const userAgent = "svc-control-tower-go/0.1"

// field is one header field of a request.
type field struct{ name, value string }

func (c *Client) open(ctx context.Context, deadline time.Time, method, target string, body []byte, fields ...field) (*exchange, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s /api/v1%s HTTP/1.1\r\n", method, target)
	fields = append([]field{
		{"Host", c.endpoint.authority},
		{"User-Agent", userAgent},
		{"X-SVC-UI-Token", c.token()},
	}, fields...)
	for _, f := range append(fields, field{"Connection", "close"}) {
		fmt.Fprintf(&b, "%s: %s\r\n", f.name, f.value)
	}
	b.WriteString("\r\n")
	return c.endpoint.exchange(ctx, deadline, append([]byte(b.String()), body...))
}

func (c *Client) ask(ctx context.Context, method, target string, body []byte, fields ...field) (*documentReply, error) {
	deadline := time.Now().Add(c.timeout)
	x, err := c.open(ctx, deadline, method, target, body, append([]field{{"Accept", typeJSON}}, fields...)...)
	if err != nil {
		return nil, err
	}
	defer x.close()
	return readAnswer(x)
}

// get reads a document, again and again as the retry policy allows.
func (c *Client) get(ctx context.Context, target string) (*documentReply, error) {
	for attempt := 1; ; attempt++ {
		a, err := c.ask(ctx, "GET", target, nil)
		if err == nil {
			return a, nil
		}
		pause, again := c.retry.pause(attempt, err, c.jitter())
		if !again || c.wait(ctx, pause) != nil {
			return nil, err
		}
	}
}

// query is the parameters of a request in their order.
type query []field

func (q query) add(name, value string) query {
	if value == "" {
		return q
	}
	return append(q, field{name, value})
}

// on puts the parameters behind a path.
func (q query) on(path string) (string, error) {
	for i, f := range q {
		if err := checkText(f.name, f.value); err != nil {
			return "", err
		}
		sep := "&"
		if i == 0 {
			sep = "?"
		}
		path += sep + f.name + "=" + strings.ReplaceAll(url.QueryEscape(f.value), "+", "%20")
	}
	return path, nil
}

var subResource = regexp.MustCompile(`/(attempts|evidence|decisions)$`)

// resourcePath is the path of one resource. An id that ends like a sub-resource has
// that slash escaped, or it would be taken for the sub-resource of another id.
func resourcePath(collection, what, id string) (string, error) {
	if id == "" {
		return "", misuseError("%s must not be empty", what)
	}
	if err := checkText(what, id); err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/:", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return collection + subResource.ReplaceAllString(b.String(), "%2F$1"), nil
}

// checkText refuses characters that no id, cursor or filter contains and no request line
// should.
func checkText(what, s string) error {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return misuseError("%s must be UTF-8 without control characters", what)
	}
	return nil
}
