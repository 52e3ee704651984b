package runstore

import (
	"bytes"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// People who wait for a verification see how far it got, not too often; the line is gone at its end.
func TestProgress(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := &command.Env{Stderr: &b, ErrorTerminal: true, Now: func() time.Time { return now }}
	var o store.VerifyOptions
	done := showProgress(e, &o)
	o.Progress(store.Checked{Runs: 1000}) // too early
	now = now.Add(time.Second)
	o.Progress(store.Checked{Runs: 2000})
	o.Progress(store.Checked{Runs: 3000}) // too soon after
	now = now.Add(time.Second)
	o.Progress(store.Checked{Runs: 3000, Events: 1000})
	done()
	const want = "\r\x1b[Kchecked 2000 runs, 0 events\r\x1b[Kchecked 3000 runs, 1000 events\r\x1b[K"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}

	// Fast ones leave no trace, and without a terminal there is no progress.
	b.Reset()
	showProgress(e, &o)()
	o = store.VerifyOptions{}
	showProgress(&command.Env{Stderr: &b}, &o)()
	if b.Len() > 0 || o.Progress != nil {
		t.Errorf("%q; want b.Len() <= 0 && o.Progress == nil", b.String())
	}
}
