// Package console shows the start of the platform to its user: steps with their time, bars for long work, and a closing
// banner. On a terminal bars move; elsewhere each change is one line.
package console

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/mlp-platform/platform/libs/cli/printable"
)

// Console writes to one stream; its methods may be called at once.
type Console struct {
	out   io.Writer // of the bars, which move the cursor
	lines io.Writer // of all else: cleaned, to the same stream
	tty   bool
	color bool

	// mu guards bars, live and writes to out and lines. No bar is touched while it is held: a call to one waits for
	// the drawing goroutine, which a writer to out may hold up.
	mu   sync.Mutex
	bars *mpb.Progress
	live map[string]*bar
}

type bar struct {
	bar   *mpb.Bar               // nil without a terminal
	stage atomic.Pointer[string] // read by the drawing goroutine, which must never wait for us
}

func newBar(stage string) *bar {
	b := &bar{}
	b.stage.Store(&stage)
	return b
}

// say sets the stage and reports whether it changed.
func (b *bar) say(stage string) bool {
	stage = printable.Line(stage)
	return *b.stage.Swap(&stage) != stage
}

// New writes to f; bars move when it is a terminal.
func New(f *os.File) *Console {
	tty := term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	return &Console{out: f, lines: printable.NewColorWriter(f), tty: tty, color: tty && os.Getenv("NO_COLOR") == "", live: map[string]*bar{}}
}

// Say writes one line.
func (c *Console) Say(format string, a ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.lines, format+"\n", a...)
}

// Step reports a finished step and how long it took.
func (c *Console) Step(name, detail string, took time.Duration) {
	mark := "ok"
	if c.color {
		mark = "\x1b[32m✓\x1b[0m"
	}
	if detail != "" {
		detail = "  " + printable.Line(detail)
	}
	c.Say("  %s %-13s %6.2f s%s", mark, name, took.Seconds(), detail)
}

const total = 1000

// Begin shows a bar for name; without a terminal it is a line.
func (c *Console) Begin(name string) {
	b := newBar("")
	if c.tty {
		b = c.draw(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live[name] = b
}

func (c *Console) draw(name string) *bar {
	c.mu.Lock()
	if c.bars == nil { // mpb.New waits for nothing
		c.bars = mpb.New(mpb.WithOutput(c.out), mpb.WithWidth(40), mpb.WithRefreshRate(120*time.Millisecond))
	}
	bars := c.bars
	c.mu.Unlock()
	b := newBar("waiting")
	inner, err := bars.Add(total, mpb.BarStyle().Lbound(" ").Filler("█").Tip("█").Padding("░").Rbound(" ").Build(),
		mpb.PrependDecorators(decor.Name("  "+printable.Line(name), decor.WC{W: 20, C: decor.DindentRight})),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO, decor.WC{W: 6}), decor.Any(func(decor.Statistics) string {
			return "  " + *b.stage.Load()
		})))
	if err != nil { // flushed meanwhile: its changes become lines
		return b
	}
	b.bar = inner
	return b
}

// Progress moves the bar of name to fraction (0..1) and shows its stage.
func (c *Console) Progress(name, stage string, fraction float64) {
	c.mu.Lock()
	b := c.live[name]
	c.mu.Unlock()
	if b == nil {
		return
	}
	changed := b.say(stage)
	if b.bar != nil {
		b.bar.SetCurrent(int64(min(max(fraction, 0), 0.999) * total)) // 1 ends a bar; End does that
		return
	}
	if changed {
		c.Say("  %-16s %s", printable.Line(name), printable.Line(stage))
	}
}

// End finishes the bar of name with its result.
func (c *Console) End(name, result string, ok bool) {
	c.mu.Lock()
	b := c.live[name]
	delete(c.live, name)
	c.mu.Unlock()
	if b == nil {
		return
	}
	b.say(result)
	switch {
	case b.bar == nil:
		c.Say("  %-16s %s", printable.Line(name), printable.Line(result))
	case ok:
		b.bar.SetCurrent(total)
	default:
		b.bar.Abort(false)
	}
}

// Flush waits until all finished bars are drawn; bars begun later start below. One that was not ended
// stays as it is: its work was given up, and waiting for it would never end.
func (c *Console) Flush() {
	c.mu.Lock()
	bars, live := c.bars, c.live
	c.bars, c.live = nil, map[string]*bar{}
	c.mu.Unlock()
	for _, b := range live {
		if b.bar != nil {
			b.bar.Abort(false)
		}
	}
	if bars != nil {
		bars.Wait()
	}
}

// Bold marks a heading on a terminal.
func (c *Console) Bold(s string) string {
	if !c.color {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}
