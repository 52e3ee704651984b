package stream

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/store"
)

const (
	poll        = 250 * time.Millisecond // between looks at the change counter
	batchSize   = 200                    // events a read
	windowSize  = 2 * batchSize          // events that the window keeps at most
	windowBytes = 1 << 20                // bytes of frames that it keeps at most
	// historyReads is how many streams read history at a time. More would take the
	// store's connections from requests and gain nothing: they read one file.
	historyReads = 2
)

// Config is how streams run.
type Config struct {
	Heartbeat time.Duration // silence after which a comment is sent
	MaxStream time.Duration // after which the server ends a stream
	Log       *slog.Logger
}

// frame is an encoded event and the fields that filters compare.
type frame struct {
	store.Event // without its envelope
	text        []byte
}

// Hub manages all streams of one server. Its methods are safe for concurrent use.
type Hub struct {
	reader  *store.Reader
	config  Config
	life    context.Context // ends when the server shuts down, and with it all waits for the store
	stop    context.CancelFunc
	history chan struct{} // places to read history in
	tailers sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	open   int
	tailer *tailer // nil while no stream is open, and after a fault
}

// New returns a hub over a store. It does nothing while no stream is open.
func New(reader *store.Reader, config Config) *Hub {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	h := &Hub{reader: reader, config: config, history: make(chan struct{}, historyReads)}
	h.life, h.stop = context.WithCancel(context.Background())
	return h
}

// Shutdown ends all streams with their marker, including those that start later.
func (h *Hub) Shutdown() { h.stop() }

// Wait returns when the hub's goroutines have ended; streams must have ended before.
func (h *Hub) Wait() { h.tailers.Wait() }

// join registers a stream; the first one starts the tailer, at the newest sequence
// that it saw.
func (h *Hub) join(newest int64) *tailer {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open++
	if h.tailer == nil || h.tailer.hasFailed() {
		ctx, cancel := context.WithCancel(h.life)
		if h.tailer != nil {
			h.tailer.cancel() // it ended; this frees its context
		}
		t := &tailer{low: newest, high: newest, wake: make(chan struct{}), failed: make(chan struct{}), cancel: cancel}
		h.tailer = t
		h.tailers.Go(func() { t.run(ctx, h) })
	}
	return h.tailer
}

// leave removes a stream; the last one stops the tailer.
func (h *Hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
	if h.open == 0 && h.tailer != nil {
		h.tailer.cancel()
		h.tailer = nil
	}
}

// tailer follows the end of the log for all streams that joined it.
type tailer struct {
	cancel context.CancelFunc
	failed chan struct{} // closed when the store could not be read

	mu        sync.Mutex // guards the fields below
	low, high int64      // the window holds every event above low up to high
	frames    []frame
	bytes     int
	wake      chan struct{} // closed and replaced when high moves
}

func (t *tailer) hasFailed() bool {
	select {
	case <-t.failed:
		return true
	default:
		return false
	}
}

// run polls the change counter until ctx ends or the store fails.
func (t *tailer) run(ctx context.Context, h *Hub) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	var last store.Mark
	for first := true; ; first = false {
		// The counter is read before the events: a commit in between is seen twice,
		// never missed.
		mark, err := h.reader.Mark(ctx)
		if err == nil && (first || mark != last) {
			last = mark
			err = t.readOn(ctx, h.reader)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			h.config.Log.ErrorContext(ctx, "tailing the event log failed", slog.Any("err", err))
			close(t.failed)
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// readOn publishes all new events.
func (t *tailer) readOn(ctx context.Context, reader *store.Reader) error {
	for {
		events, seen, err := reader.EventsAfter(ctx, t.high, store.EventFilter{}, batchSize)
		if err != nil {
			return err
		}
		// The log only grows. If it got shorter, another store took its place, and
		// its sequences are other events.
		if seen < t.high {
			return errReplaced
		}
		if len(events) > 0 {
			t.publish(events, seen)
		}
		if len(events) < batchSize {
			return nil
		}
	}
}

// publish encodes the events, moves the window over them and wakes the streams.
func (t *tailer) publish(events []store.Event, seen int64) {
	fresh := make([]frame, len(events))
	size := 0
	for i, e := range events {
		fresh[i] = frame{Event: e, text: appendFrame(nil, e)}
		fresh[i].Envelope = nil
		size += len(fresh[i].text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append(t.frames, fresh...)
	t.bytes += size
	drop := 0
	for len(all)-drop > windowSize || t.bytes > windowBytes && drop < len(all) {
		t.bytes -= len(all[drop].text)
		t.low = all[drop].Sequence
		drop++
	}
	// A new array, so that dropped entries are freed and those that streams hold stay.
	t.frames = append([]frame(nil), all[drop:]...)
	t.high = seen
	close(t.wake)
	t.wake = make(chan struct{})
}

// view returns the window's frames above a sequence. If the window does not reach back
// that far, the stream has to read history.
func (t *tailer) view(at int64) (frames []frame, high int64, history bool, wake <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at < t.low {
		return nil, t.high, true, t.wake
	}
	i := len(t.frames)
	for i > 0 && t.frames[i-1].Sequence > at {
		i--
	}
	return t.frames[i:], t.high, false, t.wake
}

// appendFrame appends an event in its wire format.
func appendFrame(b []byte, e store.Event) []byte {
	b = append(b, "id: "...)
	b = strconv.AppendInt(b, e.Sequence, 10)
	b = append(b, "\nevent: "...)
	b = append(b, e.Type...)
	b = append(b, "\ndata: "...)
	b = append(b, e.Envelope...)
	return append(b, "\n\n"...)
}

// matchesFilter reports whether the event passes the filter, by the store's rules.
func matchesFilter(f store.EventFilter, e *store.Event) bool {
	return (f.ProjectID == nil || *f.ProjectID == e.ProjectID) && (f.RunID == nil || *f.RunID == e.RunID) &&
		(f.WorkUnitID == nil || *f.WorkUnitID == e.WorkUnitID) && (f.EventType == nil || *f.EventType == e.Type)
}
