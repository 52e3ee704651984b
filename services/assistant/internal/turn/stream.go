package turn

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/sse"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
)

// frameFormat is how the frames of one stream are written.
type frameFormat struct {
	profile chat.Profile
	ids     bool // each frame carries its event id
}

// sendStream sends the reader's frames to the end and calls first once the first frame is sent. After the header no
// error response is possible: a stream that fails ends without [DONE], and its client retries.
func (s *Streams) sendStream(c echo.Context, reader *Reader, format frameFormat, first func()) error {
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	defer context.AfterFunc(s.ending, func() { time.AfterFunc(lastFrames, cancel) })()
	defer s.Meter.StreamOpened()()

	chat.SetHeaders(c.Response().Header(), reader.Session())
	out, err := sse.NewWriter(c.Response(), 0)
	if err != nil {
		return err
	}
	w := frameWriter{out: out, render: chat.NewRenderer(format.profile), ids: format.ids}
	for {
		frames, err := s.nextFrames(ctx, reader)
		switch {
		case err == nil:
			err = w.writeFrames(frames)
		case errors.Is(err, io.EOF):
			if err = w.writeMarker(chat.Done); err == nil {
				return nil
			}
		case errors.Is(err, errSilent):
			err = w.writeMarker(chat.Heartbeat)
		}
		if err != nil {
			s.logBroken(ctx, reader.Session(), err)
			return nil
		}
		if len(frames) > 0 && first != nil {
			first()
			first = nil
		}
	}
}

// lastFrames is the time a stream gets to send its remaining frames when the server stops.
const lastFrames = 2 * time.Second

// errSilent means that no frame came within StreamConfig.Silence.
var errSilent = errors.New("no frame in time")

// nextFrames waits for frames, at most for StreamConfig.Silence.
func (s *Streams) nextFrames(ctx context.Context, reader *Reader) ([]Frame, error) {
	wait, cancel := context.WithTimeoutCause(ctx, s.Silence, errSilent)
	defer cancel()
	frames, err := reader.Next(wait)
	// A database query that the timeout cancels returns another error than the context's.
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil && context.Cause(wait) == errSilent {
		return nil, errSilent
	}
	return frames, err
}

// logBroken logs why a stream ended early; at debug level when its client has left.
func (s *Streams) logBroken(ctx context.Context, session string, err error) {
	level := slog.LevelWarn
	if ctx.Err() != nil {
		level = slog.LevelDebug
	}
	s.Log.LogAttrs(ctx, level, "stream ended early", slog.String("session", session), slog.Any("err", err))
}

// frameWriter writes one stream.
type frameWriter struct {
	out    *sse.Writer
	render *chat.Renderer
	ids    bool
	buf    []byte
}

// writeFrames renders the frames and sends them in one write.
func (w *frameWriter) writeFrames(frames []Frame) error {
	buf := w.buf[:0]
	for _, f := range frames {
		id := ""
		if w.ids {
			id = chat.EventID(f.Turn, f.Seq)
		}
		var err error
		if buf, err = w.render.Render(buf, f.Data, id); err != nil {
			return err
		}
	}
	w.buf = buf
	return w.out.Send(buf)
}

// writeMarker sends a marker, which is the same in every profile.
func (w *frameWriter) writeMarker(marker string) error {
	return w.out.Send([]byte(marker))
}
