package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/semaphore"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
)

const (
	// laneMemory limits the bodies of one forge that are being read or parsed, in bytes; both forges together have 64
	// MiB.
	laneMemory = 32 << 20
	// firstRoom is each body's initial buffer in bytes, not counted in that memory: less than the connection's own
	// buffers. It doubles when it is full, so that a stranger must send as much as they occupy.
	firstRoom = 512
	// stride bytes must arrive within strideTimeout, and so must the first byte and the remainder at the end; the whole
	// body has bodyTimeout: a forge itself gives up after 10 s.
	stride        = 64 << 10
	strideTimeout = 2 * time.Second
	bodyTimeout   = 10 * time.Second
)

// intake is a body as far as it has arrived, and its share of the memory. A client that keeps a connection open and
// sends nothing has none, whatever length it declared.
type intake struct {
	memory *semaphore.Weighted
	held   int64
	bytes  []byte
}

// release returns the share; bytes must not be used afterwards.
func (b *intake) release() {
	b.memory.Release(b.held)
	b.held, b.bytes = 0, nil
}

// read reads the whole body. The error is a problem, after which the connection ends.
func (b *intake) read(c echo.Context) error {
	err := b.all(c)
	if err != nil {
		closeUnread(c)
	}
	return err
}

func (b *intake) all(c echo.Context) error {
	ctx, from := c.Request().Context(), c.Request().Body
	deadline := http.NewResponseController(c.Response())
	end := time.Now().Add(bodyTimeout)
	b.bytes = make([]byte, 0, firstRoom)
	for next := 0; ; { // next is how much must arrive for the deadline to move
		if n := len(b.bytes); n >= next {
			_ = deadline.SetReadDeadline(earlierOf(time.Now().Add(strideTimeout), end)) // fails only on a connection that is gone
			next = n + stride
			if n == 0 {
				next = 1
			}
		}
		if err := b.grow(ctx); err != nil {
			return err
		}
		n, err := from.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case len(b.bytes) > maxBody:
			return tooLarge(c)
		case errors.Is(err, io.EOF):
			_ = deadline.SetReadDeadline(time.Time{})
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return service.RequestTimeout.Errorf("The request body must arrive within %s, its first byte and each further %d KiB within %s.",
				bodyTimeout, stride>>10, strideTimeout).WithCause(err)
		case err != nil:
			return problem.BadRequest.New("The request body ended early.").WithCause(err)
		}
	}
}

// grow makes room for at least one byte. While it copies, the bytes count twice.
func (b *intake) grow(ctx context.Context) error {
	if len(b.bytes) < cap(b.bytes) {
		return nil
	}
	size := min(2*cap(b.bytes), maxBody+1)
	wait, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	if err := b.memory.Acquire(wait, int64(size)); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return tooManyDeliveries()
	}
	b.bytes = append(make([]byte, 0, size), b.bytes...)
	b.memory.Release(b.held)
	b.held = int64(size)
	return nil
}

func earlierOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
