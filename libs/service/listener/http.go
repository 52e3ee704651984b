package listener

import (
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// HTTP timeouts. There is no ReadTimeout, which would end long streams: a body has a separate deadline.
const (
	headerTime = 10 * time.Second
	idleTime   = 120 * time.Second
	// BodyTime limits how long a request's body may take to arrive; each bodyPace bytes that have come add a second.
	BodyTime = 60 * time.Second
	bodyPace = 64 << 10
	// writeTime limits an answer: a caller that does not read it must not hold a handler for ever. Streams set a
	// deadline for each write instead, which replaces this one.
	writeTime = 5 * time.Minute
	// restTime is how long an answer waits for the rest of a body that its handler has not read. Most have come with
	// the header, and their connections can be used again.
	restTime    = 10 * time.Millisecond
	restBytes   = 256 << 10
	headerBytes = 64 << 10
)

// Server returns an HTTP server with the limits of every port. Serve it on a Listener.
func Server(h http.Handler, log *slog.Logger, level slog.Level) *http.Server {
	return &http.Server{
		Handler: answerAtOnce(h), ConnContext: WithConn, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, WriteTimeout: writeTime,
		MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(log.Handler(), level),
	}
}

// answerAtOnce keeps answers from waiting for a body that their handler does not read. net/http reads up to 256 KiB of
// it before the answer's header, for as long as the sender likes.
func answerAtOnce(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(contextKey{}).(*Conn)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		c.Work()
		defer c.Wait()
		if r.ContentLength == 0 || r.ProtoMajor != 1 {
			next.ServeHTTP(w, r)
			return
		}
		begin := time.Now()
		b := &body{ReadCloser: r.Body, conn: c, control: http.NewResponseController(w), begin: begin, due: begin.Add(BodyTime), expects: r.Header["Expect"] != nil}
		_ = b.control.SetReadDeadline(b.due) // fails only on a connection that is gone
		r.Body = b
		a := &answer{ResponseWriter: w, body: b}
		defer a.settle()
		next.ServeHTTP(a, r)
	})
}

// body is a request's body that knows whether all of it was read.
type body struct {
	io.ReadCloser
	conn    *Conn
	control *http.ResponseController
	begin   time.Time
	due     time.Time // moved by Read alone
	expects bool      // the caller waits for 100 Continue before it sends the body
	read    atomic.Int64
	ended   atomic.Bool
	settled atomic.Bool // the rest of it has restTime
	own     atomic.Bool // the handler has set a deadline, which counts alone
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	stamp := b.conn.beginStep()
	n, err := b.ReadCloser.Read(p)
	b.conn.endStep(stamp)
	switch read := b.read.Add(int64(n)); {
	case err == io.EOF:
		b.ended.Store(true)
	case err == nil && !b.settled.Load() && !b.own.Load():
		if due := b.begin.Add(BodyTime + time.Duration(read/bodyPace)*time.Second); due.After(b.due) {
			b.due = due
			_ = b.control.SetReadDeadline(due) // as above
		}
	}
	return n, err
}

// Close leaves the body to the server, which needs to know how much of it is unread.
func (b *body) Close() error { return nil }

// answer is a response that settles what becomes of its request's body before its first byte.
type answer struct {
	http.ResponseWriter
	body *body
	once sync.Once
}

// settle reads the part of the body that has arrived. If that is not all, the connection ends with this answer.
func (a *answer) settle() {
	a.once.Do(func() {
		b := a.body
		if time.Since(b.begin) > time.Minute { // the time of the body is not the answer's
			_ = b.control.SetWriteDeadline(time.Now().Add(writeTime))
		}
		if b.ended.Load() {
			return
		}
		b.settled.Store(true)
		if !b.expects || b.read.Load() > 0 {
			_ = b.control.SetReadDeadline(time.Now().Add(restTime))
			if _, err := io.CopyN(io.Discard, b, restBytes); err == io.EOF && b.ended.Load() {
				return
			}
		}
		a.Header().Set("Connection", "close")
		b.conn.stopped.Store(true)
	})
}

// SetReadDeadline lets the handler limit the body's time itself, for callers of http.ResponseController too.
func (a *answer) SetReadDeadline(t time.Time) error {
	a.body.own.Store(true)
	return a.body.control.SetReadDeadline(t)
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK {
		a.settle()
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.settle()
	return a.ResponseWriter.Write(p)
}

// FlushError implements the flush of http.ResponseController.
func (a *answer) FlushError() error {
	a.settle()
	return a.body.control.Flush()
}

// Flush implements http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
