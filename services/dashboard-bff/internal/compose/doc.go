// Package compose answers views that are made of several sources. The sources of a view are called at the same
// time, each within a time-out; the view waits for the slowest of them and does without those that fail.
//
// Answers are shared: by source, tenant and parameters, for two seconds, with one call in flight. A source that
// failed is not called by any request while it fails. Its background retry calls it every few seconds for as
// long as anybody asks, so its time-out is paid once, by those who asked first:
//
//	unknown ── call ──► ok ──── 2 s, asked again ────► call
//	   ▲                 ▲
//	   │                 └── retry succeeds ──┐
//	   │   nobody asks any more               │
//	   └───────────────────────────────── failed ── retry fails ─┐
//	                                          ▲──────────────────┘
//
// A call that takes longer than views wait, such as a list of many pages, may have a budget: it goes on in the background,
// and views show the answer before it with its age.
//
// A service that hangs makes all its sources time out, whatever their parameters. After a time-out, if nothing else
// came back from the same service meanwhile, calls to it that nobody has made before are waited for only briefly.
package compose
