// Package telemetry asks the metrics store (Prometheus) and the log store (Loki), at the
// addresses of the configuration and nowhere else. Neither store can do anything but
// answer, so a query is passed on as it is, but for namespaces that are hidden.
package telemetry

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

const (
	maxAnswer     = 8 << 20 // bytes read of one answer
	maxCharacters = 6000    // of one result
	maxSeries     = 50
	maxRanges     = 20  // series over a range
	maxLabels     = 300 // characters of one series' labels
	maxSentence   = 300 // characters of a store's own error
)

// Hidden lists the namespaces that no caller may see. They are kept out of every selector of a query, and series and
// streams that name one in any label are left out.
type Hidden []string

var errTooLarge = errors.New("the answer is over 8 MiB")

// bounded is a transport whose answers end with an error after maxAnswer bytes.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = &boundedBody{answer.Body, maxAnswer}
	}
	return answer, err
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// newHTTPClient follows no redirect: the store could send the query, and what is in it, to
// any host that this process reaches.
func newHTTPClient() *http.Client {
	return &http.Client{
		Transport:     bounded{http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// parseAddress checks a configured base address.
func parseAddress(variable, base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		// The value is not quoted: it may hold a password.
		return nil, fmt.Errorf("%s is no http or https address", variable)
	}
	return u, nil
}

// refusedQuery is a store's answer to a query that it cannot run.
func refusedQuery(store, why string) error {
	return operation.Refuse(operation.InvalidArgument, "query", "%s refuses the query: %s", store, table.Line(redact.Text(why), maxSentence))
}

// notConfigured returns an error that names the missing setting.
func notConfigured(store, variable string) error {
	return operation.Refuse(operation.Unavailable, "", "No %s is configured; set %s.", store, variable)
}

func unavailableStore(f fault.Failure, cause error) error {
	return &turn.Fail{Failure: f, Cause: cause}
}
