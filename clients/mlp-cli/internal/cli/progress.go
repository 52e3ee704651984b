package cli

import (
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
)

// countBar is a progress bar on stderr; the zero value shows nothing.
type countBar struct {
	p   *mpb.Progress
	bar *mpb.Bar
}

// countBar shows a bar for total steps, on a terminal and for people only.
func (e *Env) countBar(name string, total int) countBar {
	if !e.ErrTTY || e.Quiet || e.Format.Structured() {
		return countBar{}
	}
	p := mpb.New(mpb.WithOutput(e.bars), mpb.WithWidth(40), mpb.WithRefreshRate(100*time.Millisecond))
	return countBar{p, p.AddBar(int64(total), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(output.Clean(name)+" "), decor.CountersNoUnit("%d/%d ")), mpb.AppendDecorators(decor.Percentage()))}
}

func (b countBar) add(n int) {
	if b.bar != nil {
		b.bar.IncrBy(n)
	}
}

func (b countBar) end() {
	if b.bar != nil {
		b.bar.Abort(true)
		b.p.Wait()
	}
}
