package route

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/sse"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// stream sends what reader gives until its end. first is told when the first frame has left. Once the header is out
// nothing can be answered any more: a stream that cannot go on ends without [DONE], and its client asks again.
func (a *API) stream(c echo.Context, reader *turn.Reader, profile chat.Profile, ids bool, first func()) error {
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	defer context.AfterFunc(a.ending, func() { time.AfterFunc(lastFrames, cancel) })()
	defer a.Metrics.StreamOpened()()

	chat.SetHeaders(c.Response().Header(), reader.Session())
	out, err := sse.NewWriter(c.Response(), 0)
	if err != nil {
		return err
	}
	s := sender{out: out, render: chat.NewRenderer(profile), ids: ids}
	for {
		frames, err := a.next(ctx, reader)
		switch {
		case err == nil:
			err = s.frames(frames)
		case errors.Is(err, io.EOF):
			if err = s.raw(chat.Done); err == nil {
				return nil
			}
		case errors.Is(err, errSilent):
			err = s.raw(chat.Heartbeat)
		}
		if err != nil {
			a.broken(ctx, reader.Session(), err)
			return nil
		}
		if len(frames) > 0 && first != nil {
			first()
			first = nil
		}
	}
}

// lastFrames is how long a stream may take to send what there is when the server stops.
const lastFrames = 2 * time.Second

// errSilent says that a stream had nothing to send for a while.
var errSilent = errors.New("nothing was said")

// next waits for frames as long as a stream may be silent.
func (a *API) next(ctx context.Context, reader *turn.Reader) ([]turn.Frame, error) {
	wait, cancel := context.WithTimeoutCause(ctx, a.Silence, errSilent)
	defer cancel()
	frames, err := reader.Next(wait)
	// A query of the store that was cut short by the time fails in words of its own.
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil && context.Cause(wait) == errSilent {
		return nil, errSilent
	}
	return frames, err
}

// broken logs why a stream ended early, unless its client went.
func (a *API) broken(ctx context.Context, session string, err error) {
	level := slog.LevelWarn
	if ctx.Err() != nil {
		level = slog.LevelDebug
	}
	a.Log.LogAttrs(ctx, level, "stream ended early", slog.String("session", session), slog.Any("err", err))
}

// sender writes one stream.
type sender struct {
	out    *sse.Writer
	render *chat.Renderer
	ids    bool
	buf    []byte
}

// frames renders and sends them in one write.
func (s *sender) frames(frames []turn.Frame) error {
	buf := s.buf[:0]
	for _, f := range frames {
		id := ""
		if s.ids {
			id = chat.EventID(f.Turn, f.Seq)
		}
		var err error
		if buf, err = s.render.Render(buf, f.Data, id); err != nil {
			return err
		}
	}
	s.buf = buf
	return s.out.Send(buf)
}

// raw sends a marker, which is the same in every profile.
func (s *sender) raw(marker string) error {
	return s.out.Send([]byte(marker))
}
