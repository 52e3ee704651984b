package app

import (
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/page"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
)

// launch is the one query name of the page: a code that opens it with the token.
const launch = "launch"

// page answers with the page: with token and report under a fresh launch code, and
// bare otherwise, so that other users of the machine learn nothing from it.
func (x *exchange) page() {
	if !isRead(x.r.Method) {
		x.fail(&catalogue.Fault{Code: catalogue.MethodNotAllowed, Allow: readable})
		return
	}
	values, ok := query.Parse(x.r.RawQuery, []string{launch})
	if !ok {
		x.fail(unexpectedParameter([]string{launch}))
		return
	}
	var boot *page.Boot
	// A look at the head spends no code: the page is not shown.
	if code := values.Get(launch); code != nil && x.r.Method == "GET" && x.app.Launches.Redeem(*code) {
		boot = &page.Boot{Token: x.app.Token, Report: x.app.Report}
	}
	nonce := loopback.NewNonce()
	html, err := page.HTML(nonce, boot)
	if err != nil {
		x.fail(&catalogue.Fault{Code: catalogue.InternalError, Cause: err})
		return
	}
	h := append(loopback.PageHeaders(nonce), loopback.ServiceHeaders(Interface, x.app.Version)...)
	h = x.named(append(h, about...))
	x.send(200, append(h, httpd.Field{Name: "Content-Type", Value: "text/html; charset=utf-8"}), html)
}
