package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
)

// Mode selects the subjects to serve.
type Mode string

// The modes: requests that are replied to, jobs whose results are published, or both.
const (
	RequestReply Mode = "reqres"
	PubSub       Mode = "pubsub"
	Both         Mode = "both"
)

// The subjects; those that end with a dot are followed by a model's UUID.
const (
	SubjectInfer   = "bus.infer."
	SubjectVector  = "bus.vector."
	SubjectRetrain = "bus.retrain"
	SubjectJobs    = "bus.jobs"
	SubjectResults = "bus.results"
)

// queueGroup shares the messages among the bridges: each goes to one of them.
const queueGroup = "bus-bridge"

// callTimeout limits one reading of the models.
const callTimeout = 10 * time.Second

// Config of a bridge; all fields are required.
type Config struct {
	Conn         *nats.Conn
	Serving      *inference.Client
	ControlPlane *controlplane.Client
	Mode         Mode
	Timeout      time.Duration // of one request
	Drain        time.Duration // time limit for messages in progress at shutdown
	MaxInflight  int           // requests at once; more are refused as overloaded
	Registry     prometheus.Registerer
	Log          *slog.Logger
}

// Bridge serves the bus. Run it once.
type Bridge struct {
	cfg    Config
	models directory
	stats  stats

	life    context.Context // of the work
	endWork context.CancelFunc
	slots   chan struct{}
	work    sync.WaitGroup
	serving atomic.Bool // the bus knows the subscriptions
	mu      sync.Mutex  // guards closed: no work begins once Run waits for its end
	closed  bool

	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// New registers the bridge's metrics; nothing is served before Run.
func New(cfg Config) (*Bridge, error) {
	if err := service.RequireParts("bus bridge", cfg); err != nil {
		return nil, err
	}
	b := &Bridge{
		cfg: cfg, models: directory{client: cfg.ControlPlane, log: cfg.Log},
		stats: stats{models: map[string]*modelStats{}}, slots: make(chan struct{}, cfg.MaxInflight),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bus_requests_total", Help: "Messages answered, by kind (infer, vector, retrain, job) and status (success or the problem's code).",
		}, []string{"kind", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bus_seconds", Help: "Time from a message to its answer, in seconds.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}, []string{"kind"}),
	}
	b.life, b.endWork = context.WithCancel(context.Background())
	cfg.Registry.MustRegister(b.requests, b.seconds, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bus_connected", Help: "1 while the bridge is connected to the bus.",
	}, func() float64 {
		if cfg.Conn.IsConnected() {
			return 1
		}
		return 0
	}))
	return b, nil
}

// RunDirectory reads the models' identities until ctx ends.
func (b *Bridge) RunDirectory(ctx context.Context) error { return b.models.run(ctx) }

// Run serves the subjects until ctx ends. Then it accepts no more messages and answers the ones it has.
func (b *Bridge) Run(ctx context.Context) error {
	routes := map[string]handler{}
	if b.cfg.Mode != PubSub {
		// A wildcard, so that unknown UUIDs get an answer too.
		routes[SubjectInfer+"*"] = handler{kindInfer, b.infer, refuseInfer}
		routes[SubjectVector+"*"] = handler{kindVector, b.vector, refuseVector}
		routes[SubjectRetrain] = handler{kindRetrain, b.retrain, refuseRetrain}
	}
	if b.cfg.Mode != RequestReply {
		routes[SubjectJobs] = handler{kindJob, b.job, refuseInfer}
	}
	var subs []*nats.Subscription
	for subject, h := range routes {
		sub, err := b.cfg.Conn.QueueSubscribe(subject, queueGroup, b.admit(h))
		if err != nil {
			return fmt.Errorf("subscribe to %s: %w", subject, err)
		}
		subs = append(subs, sub)
		// A rate needs the series before the first message.
		b.requests.WithLabelValues(h.kind, "success")
		b.seconds.WithLabelValues(h.kind)
	}
	b.awaitSubscriptions(ctx)
	<-ctx.Done()
	for _, sub := range subs {
		ended := sub.StatusChanged(nats.SubscriptionClosed)
		if err := sub.Drain(); err == nil && b.cfg.Conn.IsConnected() {
			select {
			case <-ended: // every message that was delivered has been admitted
			case <-time.After(leaveTimeout):
			}
		}
	}
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	// Who asked gets an answer, before the process ends.
	stop := time.AfterFunc(max(b.cfg.Drain-answerTimeout, 0), b.endWork)
	b.work.Wait()
	stop.Stop()
	if b.cfg.Conn.IsConnected() {
		if err := b.cfg.Conn.FlushTimeout(answerTimeout); err != nil {
			b.cfg.Log.Warn("the last answers may not have been sent", slog.Any("err", err))
		}
	}
	return nil
}

// awaitSubscriptions returns once the bus has processed them: until then, requests get "no responders".
func (b *Bridge) awaitSubscriptions(ctx context.Context) {
	for {
		if err := b.cfg.Conn.FlushTimeout(answerTimeout); err == nil {
			b.serving.Store(true)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(flushPause): // not connected yet
		}
	}
}

// CheckBus fails while messages do not reach the bridge.
func (b *Bridge) CheckBus() service.Check {
	switch {
	case !b.cfg.Conn.IsConnected():
		return service.Check{Status: service.Fail, Detail: "not connected to the bus"}
	case !b.serving.Load():
		return service.Check{Status: service.Fail, Detail: "the bus does not have the subscriptions yet"}
	}
	return service.Check{Status: service.OK}
}

// flushPause separates attempts to hear that the bus has the subscriptions.
const flushPause = 100 * time.Millisecond

// Timeouts of a bridge's shutdown: for leaving the queue group, and, out of the drain time, for answering messages that
// are cut short.
const (
	leaveTimeout  = 5 * time.Second
	answerTimeout = 3 * time.Second
)

// handler answers one kind of message.
type handler struct {
	kind string
	// answer makes the reply; the error, which the reply repeats, is for the log.
	answer func(ctx context.Context, msg *nats.Msg) (reply any, err error)
	// refuse makes the reply of a message that is not worked on.
	refuse func(data []byte, err error) any
}

// admit limits the concurrent work. The subscription's callback itself never waits: the client library would drop
// messages queued behind it, and a dropped message gets no answer.
func (b *Bridge) admit(h handler) nats.MsgHandler {
	return func(msg *nats.Msg) {
		if err := b.begin(func() { b.serve(h, msg) }); err != nil {
			b.finish(context.Background(), h, msg, time.Now(), h.refuse(msg.Data, err), err)
		}
	}
}

// begin runs work beside the callers, unless there is too much of it or the bridge ends.
func (b *Bridge) begin(work func()) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return problem.Draining.New("The bridge is shutting down; send the message again.")
	}
	select {
	case b.slots <- struct{}{}:
		b.work.Go(func() {
			defer func() { <-b.slots }()
			work()
		})
		return nil
	default:
		return fault.Overloaded.Errorf("The bridge works on %d messages, as many as it takes; send this one again later.", b.cfg.MaxInflight)
	}
}

// serve answers one message.
func (b *Bridge) serve(h handler, msg *nats.Msg) {
	start := time.Now()
	ctx := service.WithTrace(b.life, msg.Header.Get("X-Request-ID"), msg.Header.Get("traceparent"))
	ctx, span := service.StartSpan(ctx, "process "+h.kind, trace.WithSpanKind(trace.SpanKindConsumer))
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	reply, err := h.answer(ctx, msg)
	service.EndSpan(span, err)
	b.finish(ctx, h, msg, start, reply, err)
}

// finish sends the reply, logs and counts.
func (b *Bridge) finish(ctx context.Context, h handler, msg *nats.Msg, start time.Time, reply any, err error) {
	body, encoding := b.encode(h, msg, reply)
	err = cmp.Or(err, encoding)
	status := "success"
	if err != nil {
		f := faultOf(err)
		status = f.Code
		level := slog.LevelInfo
		if f.Status >= http.StatusInternalServerError {
			level = slog.LevelWarn
		}
		b.cfg.Log.Log(ctx, level, "bus request failed", slog.String("kind", h.kind), slog.String("code", f.Code), slog.Any("err", err))
	}
	b.requests.WithLabelValues(h.kind, status).Inc()
	b.seconds.WithLabelValues(h.kind).Observe(time.Since(start).Seconds())
	var to []string
	if msg.Reply != "" && !isReserved(msg.Reply) {
		to = append(to, msg.Reply)
	}
	if h.kind == kindJob {
		to = append(to, SubjectResults)
	}
	for _, subject := range to {
		if err := b.cfg.Conn.Publish(subject, body); err != nil {
			b.cfg.Log.WarnContext(ctx, "a bus reply was not sent", slog.String("kind", h.kind), slog.Any("err", err))
		}
	}
}

// encode makes the body of a reply. One that the broker would not carry is replaced by a short refusal, which is the error.
func (b *Bridge) encode(h handler, msg *nats.Msg, reply any) ([]byte, error) {
	body, err := json.Marshal(reply)
	limit := MaxMessage
	if n := b.cfg.Conn.MaxPayload(); n > 0 {
		limit = min(limit, int(n))
	}
	if err == nil && len(body) <= limit {
		return body, nil
	}
	fault := problem.BadGateway.Errorf("The answer cannot be sent as a message of at most %d bytes; send fewer rows in each request.", limit).WithCause(err)
	body, err = json.Marshal(h.refuse(msg.Data, fault))
	return body, errors.Join(fault, err)
}

// isReserved reports whether a reply subject belongs to the platform or the broker: the bridge may be allowed more
// than the sender, who must not publish there through it.
func isReserved(subject string) bool {
	first, _, _ := strings.Cut(subject, ".")
	return first == "platform" || first == "bus" || strings.HasPrefix(first, "$")
}

// ParseMode reads BUS_MODE.
func ParseMode(text string) (Mode, error) {
	m := Mode(strings.ToLower(strings.TrimSpace(text)))
	if !slices.Contains([]Mode{RequestReply, PubSub, Both}, m) {
		return "", fmt.Errorf("BUS_MODE is %q; it must be reqres, pubsub or both", text)
	}
	return m, nil
}
