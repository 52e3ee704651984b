package grpcserver

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
)

// answering answers each inference with so many bytes.
type answering struct {
	oippb.GRPCInferenceServiceServer // nil: the other methods are not called
	bytes                            int
}

func (a answering) ModelInfer(context.Context, *oippb.ModelInferRequest) (*oippb.ModelInferResponse, error) {
	return &oippb.ModelInferResponse{RawOutputContents: [][]byte{make([]byte, a.bytes)}}, nil
}

// run serves until the test ends.
func run(t *testing.T, bytes int, timeout time.Duration) (s *Server, addr string) {
	t.Helper()
	s, err := New(Config{
		Auth: auth.Load("", "", auth.Rules{Scopes: map[string][]string{"predict": nil}, Reads: []string{"predict"}}), Scope: "predict",
		Open: []string{oippb.GRPCInferenceService_ServerLive_FullMethodName}, Enter: func() (func(), error) { return func() {}, nil },
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Timeout: timeout, Receiving: 64, MaxMessage: 1 << 20,
		Check: func([]byte, proto.Message) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	oippb.RegisterGRPCInferenceServiceServer(s, answering{bytes: bytes})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("got %v, want a quiet end", err)
		}
	})
	return s, ln.Addr().String()
}

// connect makes a client whose windows stay as small as the protocol allows.
func connect(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithInitialWindowSize(65535), grpc.WithInitialConnWindowSize(65535),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask sends a request whose answer is not read until the stream is.
func ask(t *testing.T, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, oippb.GRPCInferenceService_ModelInfer_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(&oippb.ModelInferRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	return stream
}

func awaitUnread(t *testing.T, s *Server, what string, ok func(int64) bool) {
	t.Helper()
	testenv.Eventually(t, 30*time.Second, func() error {
		if n := s.conns.unread.Load(); !ok(n) {
			return status.Errorf(codes.Internal, "%d bytes wait, want %s", n, what)
		}
		return nil
	})
}

// Answers that a client does not read have a limit on its connection, and are given back when it reads them.
func TestUnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	const size = 24 << 20
	s, addr := run(t, size, 10*time.Minute)
	conn := connect(t, addr)
	first := ask(t, conn)
	awaitUnread(t, s, "one answer", func(n int64) bool { return n > size })
	second := ask(t, conn)
	awaitUnread(t, s, "two answers", func(n int64) bool { return n > 2*size })
	third := ask(t, conn) // its refusal is short and passes the window, as an answer without data does
	err := third.RecvMsg(&oippb.ModelInferResponse{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "wait for this connection's client") {
		t.Errorf("a third answer: got %v, want Unavailable", err)
	}
	for i, stream := range []grpc.ClientStream{first, second} {
		var answer oippb.ModelInferResponse
		if err := stream.RecvMsg(&answer); err != nil || len(answer.RawOutputContents[0]) != size {
			t.Errorf("answer %d: got %v, want %d bytes", i+1, err, size)
		}
	}
	awaitUnread(t, s, "none once they are read", func(n int64) bool { return n == 0 })
	var answer oippb.ModelInferResponse
	if err := ask(t, conn).RecvMsg(&answer); err != nil {
		t.Errorf("after reading: got %v, want an answer", err)
	}
}

// One principal fills no more than its share, over however many connections, so that others are answered beside it.
func TestUnreadAnswersOfOnePrincipalAreBounded(t *testing.T) {
	t.Parallel()
	all := &connections{patience: 10 * time.Minute}
	open := func(principal string) *connection {
		c := &connection{all: &all.unread, patience: all.patience}
		c.belongTo(all.share(principal))
		t.Cleanup(c.end)
		return c
	}
	one, two, third, other := open("a"), open("a"), open("a"), open("b")
	for i, c := range []*connection{one, two} {
		if err := c.reserve(maxUnread); err != nil {
			t.Fatalf("connection %d: got %v, want room", i+1, err)
		}
	}
	if err := third.reserve(1); err == nil || !strings.Contains(err.Error(), "wait for you") {
		t.Errorf("a third connection: got %v, want that too much waits for this principal", err)
	}
	if err := other.reserve(maxUnread); err != nil {
		t.Errorf("another principal: got %v, want room", err)
	}
	one.end() // releases the waiting answers, as release does
	two.release(maxUnread)
	if err := third.reserve(2 * maxUnread); err != nil {
		t.Errorf("once nothing waits: got %v, want room", err)
	}
	third.release(2 * maxUnread)
	if own, total := all.share("a").Load(), all.unread.Load(); own != 0 || total != maxUnread {
		t.Errorf("got %d bytes of the principal and %d of all, want 0 and %d", own, total, maxUnread)
	}
}

// A client that takes no answer for as long as a call may take loses its connection, and its answers their memory.
func TestConnectionOfClientThatNeverReadsIsClosed(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	s, addr := run(t, size, 2*time.Second)
	conn := connect(t, addr)
	ask(t, conn)
	awaitUnread(t, s, "one answer", func(n int64) bool { return n > size })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !conn.WaitForStateChange(ctx, connectivity.Ready) {
		t.Fatal("the connection stays open, want it closed")
	}
	awaitUnread(t, s, "none of a closed connection", func(n int64) bool { return n == 0 })
}

// slowConn reads a little at each tick.
type slowConn struct {
	net.Conn
	ticks <-chan time.Time
}

func (c slowConn) Read(p []byte) (int, error) {
	<-c.ticks
	return c.Conn.Read(p[:min(len(p), 128<<10)])
}

// A client that needs longer for an answer than a call may take keeps its connection, as long as it reads.
func TestSlowReaderKeepsItsConnection(t *testing.T) {
	t.Parallel()
	const (
		size     = 16 << 20 // much more than the kernel's buffers
		patience = 3 * time.Second
	)
	_, addr := run(t, size, patience)
	ticker := time.NewTicker(70 * time.Millisecond)
	t.Cleanup(ticker.Stop)
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithReadBufferSize(128<<10),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return slowConn{conn, ticker.C}, conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	began := time.Now()
	var answer oippb.ModelInferResponse
	if err := ask(t, conn).RecvMsg(&answer); err != nil || len(answer.RawOutputContents[0]) != size {
		t.Fatalf("after %s: got %v, want %d bytes", time.Since(began), err, size)
	}
	if took := time.Since(began); took < 2*patience {
		t.Errorf("got the answer after %s, want a client so slow that it takes more than %s", took, 2*patience)
	}
}

// Cancelled answers are released as well.
func TestCancelledAnswersAreGivenBack(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	s, addr := run(t, size, 10*time.Minute)
	conn := connect(t, addr)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, oippb.GRPCInferenceService_ModelInfer_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(&oippb.ModelInferRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitUnread(t, s, "one answer", func(n int64) bool { return n > size })
	cancel()
	awaitUnread(t, s, "none", func(n int64) bool { return n == 0 })
}
