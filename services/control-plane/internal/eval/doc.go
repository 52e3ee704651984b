// Package eval keeps evaluation runs: what a suite measured of a model's version.
//
// A run is recorded when it has ended, and the record never changes. Its status
// is the suite's own verdict: passed, failed, or error where the run broke off
// and says nothing of the model. A suite may pass although a metric did not; the
// metric is then an alert.
//
// A run belongs to the tenant that recorded it. A tenant sees its own and those
// of tenant platform, and its promotions are judged by these.
package eval
