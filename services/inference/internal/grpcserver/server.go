// Package grpcserver serves gRPC next to the service's HTTP, with the same credentials, limits and errors.
//
// A call is judged when its header arrives, before its message is read: who sends it, and whether there is room for it.
package grpcserver

import (
	"context"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/listener"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
)

// Config of a Server; all fields are required.
type Config struct {
	Auth  *auth.Authenticator // open to all without credentials
	Scope string              // required of callers, except for methods in Open
	Open  []string            // full names of methods that need no credential
	// Enter counts a call as a request of the service, or returns why none is accepted.
	Enter    func() (leave func(), err error)
	Registry prometheus.Registerer
	Log      *slog.Logger
	// Tracing makes the spans of calls; nil: none.
	Tracing trace.TracerProvider `part:"optional"`
	// Timeout limits a call, its message's arrival included.
	Timeout time.Duration
	// Receiving limits the calls whose messages are arriving; each may hold MaxMessage.
	Receiving  int
	MaxMessage int // bytes of a request
	// Check refuses a message that must not be decoded.
	Check func(wire []byte, message proto.Message) error
}

// Limits of one connection, as HTTP has them.
const (
	maxStreams    = 128
	maxHeader     = 64 << 10
	handshakeTime = 10 * time.Second
	idleTime      = 120 * time.Second
	// ageTime is how long a connection lives.
	ageTime = 30 * time.Minute
	// Messages of open methods have separate places, for a shorter time, since no credential limits them.
	openReceiving, openTime = 8, 5 * time.Second
	// endTime is how long connections may take to end once no call is left.
	endTime = time.Second
)

// Server is a gRPC server of the service. Register on it, then Run.
type Server struct {
	*grpc.Server
	cfg       Config
	receiving catalog.Gate
	open      catalog.Gate // as receiving, for open methods
	codec     *codec
	conns     *connections
	calls     *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	methods   map[string]string // the last part of each full name that is served; set by Run
}

// New returns a Server.
func New(cfg Config) (*Server, error) {
	if err := service.RequireParts("grpcserver", cfg); err != nil {
		return nil, err
	}
	s := &Server{
		cfg:     cfg,
		codec:   newCodec(cfg.Check),
		conns:   &connections{patience: cfg.Timeout},
		calls:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "grpc_requests_total", Help: "gRPC calls by method and status code."}, []string{"method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "grpc_request_duration_seconds", Help: "Time of gRPC calls, from the whole request to its answer.", Buckets: prometheus.DefBuckets}, []string{"method"}),
	}
	cfg.Registry.MustRegister(s.calls, s.seconds)
	s.Server = grpc.NewServer(
		grpc.InTapHandle(s.admit), grpc.UnaryInterceptor(s.handle),
		grpc.MaxRecvMsgSize(cfg.MaxMessage), grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(maxHeader), grpc.ConnectionTimeout(handshakeTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime, Time: idleTime, MaxConnectionAge: ageTime, MaxConnectionAgeGrace: cfg.Timeout}),
		grpc.ForceServerCodecV2(s.codec), grpc.StatsHandler(s.conns),
		grpc.WaitForHandlers(true),
	)
	return s, nil
}

// Run serves on ln until ctx ends, which must be after the last call did.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	s.methods = map[string]string{}
	for name, info := range s.GetServiceInfo() {
		for _, m := range info.Methods {
			s.methods["/"+name+"/"+m.Name] = m.Name
		}
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(accepting{listener.New(ln, 0), s.conns}) }() // ends with Stop
	s.cfg.Log.InfoContext(ctx, "listening for gRPC", slog.String("addr", ln.Addr().String()))
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	stopped := make(chan struct{})
	go func() {
		s.GracefulStop()
		close(stopped)
	}()
	t := time.NewTimer(endTime)
	defer t.Stop()
	select {
	case <-stopped:
	case <-t.C:
		s.Stop()
		<-stopped
	}
	return <-served
}

// receivedKey holds the function that ends a message's arrival.
type receivedKey struct{}

// admit is called with a call's header. It must not wait: the connection's other calls do.
func (s *Server) admit(stream context.Context, info *tap.Info) (context.Context, error) {
	ctx := stream
	if !slices.Contains(s.cfg.Open, info.FullMethodName) && s.cfg.Auth.Configured() {
		p, err := s.authorize(info.Header.Get("authorization"))
		if err != nil {
			return ctx, s.refuse(ctx, info.FullMethodName, err)
		}
		ctx = auth.WithPrincipal(ctx, p)
		if conn, ok := stream.Value(connectionKey{}).(*connection); ok {
			conn.belongTo(s.conns.share(p.Name))
			conn.keep(p.Tenant + "/" + p.Name)
		}
	}
	leave, err := s.enter(stream, info.FullMethodName)
	if err != nil {
		return ctx, s.refuse(ctx, info.FullMethodName, err)
	}
	// A caller that sends its message slowly holds its place no longer than a call may take.
	timeout := s.cfg.Timeout
	if slices.Contains(s.cfg.Open, info.FullMethodName) {
		timeout = min(timeout, openTime)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	context.AfterFunc(stream, cancel)
	stop := context.AfterFunc(stream, leave)
	return context.WithValue(ctx, receivedKey{}, func() {
		if stop() {
			leave()
		}
	}), nil
}

// enter takes a place for a message: one of those for open methods, else one of all and of its connection's share.
func (s *Server) enter(stream context.Context, method string) (leave func(), err error) {
	if slices.Contains(s.cfg.Open, method) {
		if !s.open.Enter(openReceiving) {
			return nil, tooMany("%d messages of methods without credential are arriving, as many as the service takes", openReceiving)
		}
		return s.open.Leave, nil
	}
	own := &catalog.Gate{}
	if conn, ok := stream.Value(connectionKey{}).(*connection); ok {
		own = &conn.arriving
	}
	share := max(1, s.cfg.Receiving/2)
	if !own.Enter(share) {
		return nil, tooMany("%d messages are arriving over this connection, as many as one may send", share)
	}
	if !s.receiving.Enter(s.cfg.Receiving) {
		own.Leave()
		return nil, tooMany("%d messages are arriving, as many as the service takes", s.cfg.Receiving)
	}
	return func() {
		s.receiving.Leave()
		own.Leave()
	}, nil
}

func tooMany(format string, most int) error {
	return fault.Overloaded.Errorf(format+"; send the request again later.", most).After(time.Second)
}

func (s *Server) authorize(values []string) (auth.Principal, error) {
	header := ""
	switch len(values) {
	case 0:
	case 1:
		header = values[0]
	default: // ambiguous, so none is used
		return auth.Principal{}, auth.InvalidCredential.New("Send one authorization entry.")
	}
	p, err := s.cfg.Auth.Authenticate(header)
	if err == nil && !p.Has(s.cfg.Scope) {
		err = auth.InsufficientScope.Errorf("This method needs the scope %s, which %s does not hold.", s.cfg.Scope, p.Name)
	}
	return p, err
}

// handle is called with each whole request.
func (s *Server) handle(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
	start := time.Now()
	if received, ok := ctx.Value(receivedKey{}).(func()); ok {
		received()
	}
	conn, _ := ctx.Value(connectionKey{}).(*connection)
	conn.begin()
	defer conn.done()
	md, _ := metadata.FromIncomingContext(ctx)
	ctx = service.WithTrace(service.WithTracing(ctx, s.cfg.Tracing), only(md, "x-request-id"), only(md, "traceparent"))
	if s.cfg.Tracing != nil {
		var span trace.Span
		ctx, span = service.StartSpan(ctx, strings.TrimPrefix(info.FullMethod, "/"), trace.WithSpanKind(trace.SpanKindServer))
		defer func() { service.EndSpan(span, err) }()
	}
	_ = grpc.SetHeader(ctx, metadata.Pairs("x-request-id", service.RequestID(ctx))) // fails only on a stream that is gone
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.ErrorContext(ctx, "handler panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = s.refuse(ctx, info.FullMethod, problem.Internal.New("The service failed to answer; its log has the cause under this request id."))
		}
		s.seconds.WithLabelValues(s.methods[info.FullMethod]).Observe(time.Since(start).Seconds())
	}()
	if err := s.codec.refusal(req); err != nil {
		return nil, s.refuse(ctx, info.FullMethod, err)
	}
	leave, err := s.cfg.Enter()
	if err != nil {
		return nil, s.refuse(ctx, info.FullMethod, err)
	}
	defer leave()
	if answer, err = next(ctx, req); err != nil {
		return nil, s.refuse(ctx, info.FullMethod, err)
	}
	if err := s.codec.keep(conn, answer); err != nil {
		return nil, s.refuse(ctx, info.FullMethod, err)
	}
	s.count(info.FullMethod, codes.OK)
	return answer, nil
}

// only is the one value of an entry; empty if there is none, or several.
func only(md metadata.MD, key string) string {
	if values := md.Get(key); len(values) == 1 {
		return values[0]
	}
	return ""
}

// refuse counts and logs a call that failed, as problem.Handler does, and returns its status.
func (s *Server) refuse(ctx context.Context, method string, err error) error {
	if st, ok := status.FromError(err); ok { // the handler's own, or of a method that the protocol does not know
		s.count(method, st.Code())
		return err
	}
	p := problem.From(err)
	st := statusOf(p, service.RequestID(ctx))
	level := slog.LevelDebug
	switch {
	case p.Kind.Code == problem.Internal.Code:
		level = slog.LevelError
	case p.Status() >= 500:
		level = slog.LevelWarn
	}
	s.cfg.Log.LogAttrs(ctx, level, "request refused", slog.String("status", st.Code().String()), slog.String("code", p.Kind.Code), slog.String("method", method), slog.Any("err", p))
	s.count(method, st.Code())
	return st.Err()
}

// count keeps labels to the methods that there are.
func (s *Server) count(method string, code codes.Code) {
	name, ok := s.methods[method]
	if !ok {
		name = "other"
	}
	s.calls.WithLabelValues(name, code.String()).Inc()
}
