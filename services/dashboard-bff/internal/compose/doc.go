// Package compose answers views that combine several sources. The sources of a view are called in parallel, each with a
// timeout; the view waits for the slowest of them and omits those that fail.
//
// Answers are shared: by source, tenant and parameters, for two seconds, with one call in flight. A source that
// failed is not called by any request while it fails. A background retry calls it every few seconds while requests
// for it continue, so its timeout is paid once, by the first requests:
//
//	unknown ── call ──► ok ──── 2 s, asked again ────► call
//	   ▲                 ▲
//	   │                 └── retry succeeds ──┐
//	   │   no more requests                   │
//	   └───────────────────────────────── failed ── retry fails ─┐
//	                                          ▲──────────────────┘
//
// A call that takes longer than views wait, such as a list of many pages, may have a budget: it continues in the
// background, and views show the previous answer with its age.
//
// A service that hangs makes all its sources time out, whatever their parameters. After a timeout, unless another call
// to the service has returned since, calls made for the first time are waited for only briefly.
package compose
