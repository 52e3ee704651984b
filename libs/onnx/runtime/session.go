package runtime

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ort "github.com/yalue/onnxruntime_go"
)

// ErrClosed is returned by Run after Close.
var ErrClosed = errors.New("model is closed")

// Options of a session; the zero value suits serving.
type Options struct {
	// Threads that one run may use; 0 means 1, which is best for many small concurrent runs.
	Threads int
	Engine  Engine
	// RunLimit ends a run that takes longer; 0 means no limit.
	RunLimit time.Duration
	// Clock is the clock of RunLimit, never faster than real time; nil: real time.
	Clock func() time.Duration
	// Overran is called when a run takes longer than RunLimit, concurrently with the run, which may continue until its
	// current operator is done. It must not block; nil: not called.
	Overran func()
	// ReadFile reads a file in which the model keeps constants, by its path from the model file's folder; nil refuses such
	// models. The path is local: it has no "..".
	ReadFile func(name string) ([]byte, error)
}

// Session is an open model. Run is safe for concurrent use.
type Session struct {
	mu      sync.RWMutex // Run holds it shared, Close alone: Close waits for the last run
	session *ort.DynamicAdvancedSession
	inputs  []Info
	outputs []Info
	options Options
	// readsSize is that of the model.
	readsSize bool
	texts     map[string][]string
	classes   []string
	pool      atomic.Bool // batches up to maxSlotRows go through slots
	slots     slots
}

// Open reads the model at path. The file may be deleted afterwards.
func Open(path string, o Options) (*Session, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("opening model: %w", err)
	}
	s, err := OpenBytes(data, o)
	if err != nil {
		return nil, fmt.Errorf("opening model %s: %w", path, err)
	}
	return s, nil
}

// OpenBytes opens a model held in memory; data is not kept.
func OpenBytes(data []byte, o Options) (*Session, error) {
	m, err := parseModel(data, o.ReadFile) // before the library, which costs more than most refusals
	if err != nil {
		return nil, err
	}
	if err := Init(""); err != nil {
		return nil, err
	}
	opts, err := ort.NewSessionOptions()
	if err != nil {
		return nil, fmt.Errorf("session options: %w", err)
	}
	defer func() { _ = opts.Destroy() }()
	threads := max(o.Threads, 1)
	if err := errors.Join(
		opts.SetIntraOpNumThreads(threads),
		opts.SetInterOpNumThreads(1),
		// Idle threads that spin would take the cores from the HTTP side.
		opts.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"),
		opts.AddSessionConfigEntry("session.inter_op.allow_spinning", "0"),
	); err != nil {
		return nil, fmt.Errorf("session options: %w", err)
	}
	if err := o.Engine.apply(opts); err != nil {
		return nil, err
	}
	session, err := ort.NewDynamicAdvancedSessionWithONNXData(m.data, tensorNames(m.inputs), tensorNames(m.outputs), opts)
	if err != nil {
		return nil, fmt.Errorf("not a model this runtime can serve: %w", err)
	}
	s := &Session{session: session, inputs: m.inputs, outputs: m.outputs, options: o, readsSize: m.readsSize, texts: m.texts, classes: m.classes}
	s.pool.Store(canPool(m.inputs, m.outputs))
	s.slots.keep = 2 * goruntime.GOMAXPROCS(0)
	return s, nil
}

// IsOutOfMemory reports whether opening or running failed because the library got no memory; the library reports it
// only in the error text.
func IsOutOfMemory(err error) bool {
	for _, words := range []string{"bad_alloc", "bad allocation", "Failed to allocate memory", "out of memory"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

func tensorNames(infos []Info) []string {
	out := make([]string, len(infos))
	for i, in := range infos {
		out[i] = in.Name
	}
	return out
}

// Inputs in the order that Run takes them. Do not change the result.
func (s *Session) Inputs() []Info { return s.inputs }

// Outputs in the order that Run returns them. Do not change the result.
func (s *Session) Outputs() []Info { return s.outputs }

// ReadsSize reports whether the cost of a run may depend on the number of rows in any way at all, because the graph
// computes with sizes. The cost for a number of rows is then known only from a run with that number.
func (s *Session) ReadsSize() bool { return s.readsSize }

// KnownTexts are texts that the encoders behind a text input know, a few of them; none where they are not listed.
func (s *Session) KnownTexts(input string) []string { return s.texts[input] }

// Classes are the names of the classes that the graph distinguishes, in the order of their probabilities; nil if it
// names none, or several lists of them.
func (s *Session) Classes() []string { return s.classes }

func (s *Session) newGuard() (*guard, error) { return newGuard(s.options) }

// Close frees the model once the last run has ended; later runs answer ErrClosed. Closing twice is fine.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return nil
	}
	s.slots.destroy()
	err := s.session.Destroy()
	s.session = nil
	giveMemoryBack()
	return err
}

// Run answers the model's outputs for the inputs, given in the order of Inputs or by name. The tensors
// are read before Run returns; the results belong to the caller.
func (s *Session) Run(in []Tensor) ([]Tensor, error) {
	in, err := s.arrange(in)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.session == nil {
		return nil, ErrClosed
	}
	out, err := s.run(in)
	for i := range out {
		if n := s.outputs[i].Narrow; n != nil && err == nil {
			err = n.settle(&out[i])
		}
	}
	return out, err
}

// run is called with mu held.
func (s *Session) run(in []Tensor) ([]Tensor, error) {
	if s.pool.Load() {
		if rows, ok := sameRows(in); ok {
			out, err := s.runSlot(in, rows)
			if !errors.Is(err, errSlot) {
				return out, err
			}
		}
	}
	return s.runOnce(in)
}

// arrange orders the tensors as the model does and checks each.
func (s *Session) arrange(in []Tensor) ([]Tensor, error) {
	if len(in) != len(s.inputs) {
		return nil, fmt.Errorf("%d inputs given, the model wants %d: %s", len(in), len(s.inputs), strings.Join(tensorNames(s.inputs), ", "))
	}
	copied := false
	for i := range s.inputs {
		info := &s.inputs[i]
		if in[i].Name != "" && in[i].Name != info.Name {
			j := i + 1
			for ; j < len(in) && in[j].Name != info.Name; j++ {
			}
			if j == len(in) {
				return nil, fmt.Errorf("input %q is missing", info.Name)
			}
			if !copied {
				in, copied = append([]Tensor(nil), in...), true
			}
			in[i], in[j] = in[j], in[i]
		}
		if err := info.check(&in[i]); err != nil {
			return nil, err
		}
		if info.Narrow != nil {
			if !copied {
				in, copied = append([]Tensor(nil), in...), true
			}
			info.Narrow.round(&in[i])
		}
		for _, v := range in[i].Strings {
			if strings.IndexByte(v, 0) >= 0 { // the C side would end the string there, and match another category
				return nil, fmt.Errorf("input %q has a text with a NUL character", info.Name)
			}
		}
	}
	return in, nil
}

// sameRows is the number of rows if slots exist for it.
func sameRows(in []Tensor) (int, bool) {
	if len(in) == 0 {
		return 0, false
	}
	rows := in[0].Dims[0]
	if rows < 1 || rows > maxSlotRows {
		return 0, false
	}
	for i := range in {
		if in[i].Dims[0] != rows {
			return 0, false
		}
	}
	return int(rows), true
}

// errSlot means that the run may still succeed with newly made tensors.
var errSlot = errors.New("slot")

func (s *Session) runSlot(in []Tensor, rows int) ([]Tensor, error) {
	sl := s.slots.take(rows)
	if sl == nil {
		var err error
		if sl, err = newSlot(s.inputs, s.outputs, rows, s.newGuard); err != nil {
			s.pool.Store(false)
			return nil, errSlot
		}
	}
	for i := range in {
		if err := sl.in[i].fill(&in[i]); err != nil {
			sl.destroy()
			return nil, fmt.Errorf("input %q: %w", s.inputs[i].Name, err)
		}
	}
	sl.guard.start()
	err := s.session.RunWithOptions(sl.ins, sl.outs, sl.guard.opts)
	if sl.guard.end() {
		sl.destroy()
		return nil, ErrOverran
	}
	if err != nil {
		// Either the model raised, or it declares output sizes it does not keep; only a run with free outputs can
		// distinguish these.
		sl.destroy()
		out, again := s.runOnce(in)
		if again == nil {
			s.pool.Store(false)
		}
		return out, again
	}
	out := make([]Tensor, len(sl.out))
	for i := range sl.out {
		var err error
		if out[i], err = sl.out[i].result(s.outputs[i].Name, sl.dims[i]); err != nil {
			sl.destroy()
			return nil, err
		}
	}
	if !s.slots.put(sl) {
		sl.destroy()
	}
	return out, nil
}

// runOnce makes the input tensors for this run and lets the library make the outputs.
func (s *Session) runOnce(in []Tensor) ([]Tensor, error) {
	var pin goruntime.Pinner
	defer pin.Unpin()
	ins, outs := make([]ort.Value, 0, len(in)), make([]ort.Value, len(s.outputs))
	defer func() {
		for _, v := range append(ins, outs...) {
			if v != nil {
				_ = v.Destroy()
			}
		}
	}()
	for i := range in {
		n, _ := countElements(in[i].Dims)
		v, err := newValue(s.inputs[i].Type, in[i].Dims, n)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", s.inputs[i].Name, err)
		}
		ins = append(ins, v.ort)
		if m := v.memory(); m != nil {
			pin.Pin(m)
		}
		if err := v.fill(&in[i]); err != nil {
			return nil, fmt.Errorf("input %q: %w", s.inputs[i].Name, err)
		}
	}
	g, err := s.newGuard()
	if err != nil {
		return nil, err
	}
	defer g.destroy()
	g.start()
	err = s.session.RunWithOptions(ins, outs, g.opts)
	if g.end() {
		return nil, ErrOverran
	}
	if err != nil {
		return nil, fmt.Errorf("running model: %w", err)
	}
	results := make([]Tensor, len(outs))
	for i, v := range outs {
		var err error
		if results[i], err = adoptTensor(s.outputs[i].Name, v); err != nil {
			return nil, err
		}
	}
	return results, nil
}
