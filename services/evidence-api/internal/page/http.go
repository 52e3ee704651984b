package page

import (
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/exchange"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
)

// launch is the page's one query name: a code that opens it with the token.
const launch = "launch"

// Handler serves the page.
type Handler struct {
	Token    string
	Report   []byte // the report that the page opens with
	Launches *loopback.Launches
}

// Serve answers with the page: with token and report for a fresh launch code, and
// without them otherwise, so that other users of the machine learn nothing from it.
func (h *Handler) Serve(x *exchange.Exchange) {
	r := x.Request
	if r.Method != "GET" && r.Method != "HEAD" {
		x.Fail(&catalogue.Fault{Code: catalogue.MethodNotAllowed, Allow: "GET, HEAD"})
		return
	}
	values, ok := query.Parse(r.RawQuery, []string{launch})
	if !ok {
		x.Fail(catalogue.UnexpectedParameter([]string{launch}))
		return
	}
	var boot *Boot
	// HEAD spends no code: the page is not shown.
	if code := values.Get(launch); code != nil && r.Method == "GET" && h.Launches.Redeem(*code) {
		boot = &Boot{Token: h.Token, Report: h.Report}
	}
	nonce := loopback.NewNonce()
	html, err := HTML(nonce, boot)
	if err != nil {
		x.Fail(&catalogue.Fault{Code: catalogue.InternalError, Cause: err})
		return
	}
	x.Page(nonce, html)
}
