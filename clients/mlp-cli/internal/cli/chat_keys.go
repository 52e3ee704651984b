package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

// Causes of a wait or an answer that a signal ended.
var (
	errInterrupted = fault.New("interrupted", "interrupted")
	errTerminated  = fault.New("terminated", "terminated")
)

// keys handles Ctrl-C during a conversation. Each press ends one answer or one wait; elsewhere the first press ends
// the command.
type keys struct{ signals chan os.Signal }

func listenForKeys() *keys {
	k := &keys{make(chan os.Signal, 1)}
	signal.Notify(k.signals, os.Interrupt, syscall.SIGTERM)
	return k
}

func (k *keys) stop() { signal.Stop(k.signals) }

// during returns a context that the next signal ends, with why as its cause. Earlier presses are discarded: what they
// were meant to end is over.
func (k *keys) during(ctx context.Context) (context.Context, context.CancelFunc) {
	select {
	case s := <-k.signals:
		if s == syscall.SIGTERM {
			select {
			case k.signals <- s:
			default: // another arrived in between
			}
		}
	default:
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case s := <-k.signals:
			if s == syscall.SIGTERM {
				cancel(errTerminated)
			} else {
				cancel(errInterrupted)
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-ended // it takes no press meant for the next prompt
	}
}

// typedLines reads the lines a person types. One goroutine reads, for as long as the program runs: a read of a
// terminal cannot be cancelled, and the next prompt takes over the one that an earlier prompt left behind.
type typedLines struct {
	lines chan typedLine
	ended error // the error that ended the input, once read
}

type typedLine struct {
	text string
	err  error
}

func readTypedLines(in io.Reader) *typedLines {
	t := &typedLines{lines: make(chan typedLine)}
	go func() {
		r := bufio.NewReader(in)
		for {
			text, err := r.ReadString('\n')
			t.lines <- typedLine{text, err}
			if err != nil {
				return
			}
		}
	}()
	return t
}

// next calls show, which prints the prompt, and returns the line; io.EOF at the end of input, or the signal that ended
// the wait. A press after show counts, however soon it comes.
func (t *typedLines) next(keys *keys, show func()) (string, error) {
	if t.ended != nil {
		show()
		return "", t.ended // the input has ended
	}
	ctx, cancel := keys.during(context.Background())
	defer cancel()
	show()
	select {
	case l := <-t.lines:
		t.ended = l.err
		return l.text, l.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// forget discards what was typed before a prompt, but keeps an EOF.
func (t *typedLines) forget(in io.Reader) {
	if f, ok := in.(*os.File); ok {
		_ = discardInput(f) // no terminal has nothing to drop
	}
	select {
	case l := <-t.lines:
		t.ended = l.err
	default:
	}
}
