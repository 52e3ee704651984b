package turn

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/limit"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
)

// StreamConfig holds the settings of the streams.
type StreamConfig struct {
	Model   string // the name under which the service offers its model
	MaxBody int64  // of a chat request, in bytes
	// Silence is the longest pause in a stream before a heartbeat is sent; 0 means 15 s.
	Silence time.Duration
}

// StreamMeter counts streams.
type StreamMeter interface {
	// StreamOpened counts a stream as open until closed is called.
	StreamOpened() (closed func())
	// FirstEvent records the time from a request to its first frame.
	FirstEvent(took time.Duration)
}

// StreamDeps holds what the streams depend on.
type StreamDeps struct {
	Turns    *Service
	Actions  *action.Service
	Sessions *session.Service
	Slots    *limit.Slots // open streams of each caller
	Meter    StreamMeter
	Log      *slog.Logger
}

// Streams serves the routes that answer with a stream of frames.
type Streams struct {
	StreamConfig
	StreamDeps
	bodies *limit.Slots    // chat requests whose body is still being received
	ending context.Context // ends streams that would outlive the server
	end    context.CancelFunc
}

// NewStreams returns the handlers, or an error that names the missing parts.
func NewStreams(c StreamConfig, d StreamDeps) (*Streams, error) {
	if err := service.RequireParts("turn streams", d); err != nil {
		return nil, err
	}
	if c.Silence <= 0 {
		c.Silence = 15 * time.Second
	}
	s := &Streams{StreamConfig: c, StreamDeps: d, bodies: limit.NewSlots(bodiesPerStream * d.Slots.Most())}
	s.ending, s.end = context.WithCancel(context.Background())
	return s, nil
}

// EndStreams ends the streams that still wait for frames after a short delay, without the closing marker, so that their
// clients reconnect. Streams of turns that have ended send the remaining frames first.
func (s *Streams) EndStreams() { s.end() }

// slotRetry is the Retry-After for a caller with too many streams; most answers end within seconds.
const slotRetry = 5 * time.Second

const manyStreams = "Too many streams of this caller are open; read one to its end or close it."

// takeSlot reserves one of the caller's streams.
func (s *Streams) takeSlot(limitKey string) (release func(), err error) {
	release, ok := s.Slots.Take(limitKey)
	if !ok {
		return nil, tooManyStreams(manyStreams)
	}
	return release, nil
}

// bodiesPerStream limits the bodies that a caller may be sending at once, per stream allowed. Bodies are counted apart
// from streams: one that never ends would otherwise hold a stream until the body times out.
const bodiesPerStream = 4

// readBody reads the request. A caller without a free stream is refused before the body is read.
func (s *Streams) readBody(c echo.Context, limitKey string) (chat.Request, chat.SessionHint, error) {
	if s.Slots.Full(limitKey) {
		return chat.Request{}, chat.SessionHint{}, tooManyStreams(manyStreams)
	}
	done, ok := s.bodies.Take(limitKey)
	if !ok {
		return chat.Request{}, chat.SessionHint{}, tooManyStreams("Too many requests of this caller are still being sent; send one to its end or close it.")
	}
	defer done()
	return chat.Read(c, s.MaxBody)
}

func tooManyStreams(detail string) error { return problem.RateLimited.New(detail).After(slotRetry) }

// ServeChat answers POST /v1/chat/completions.
func (s *Streams) ServeChat(c echo.Context) error {
	began := time.Now()
	w := caller.Who(c)
	by, _ := caller.FromContext(c.Request().Context())
	q, hint, err := s.readBody(c, by.LimitKey())
	if err != nil {
		return err
	}
	ctx, h := c.Request().Context(), c.Request().Header
	profile := chat.ProfileOf(h, s.Model, q.Model)
	if err := q.RequireStream(profile); err != nil {
		return err
	}
	cluster, err := s.Turns.Clusters.FromHeader(h)
	if err != nil {
		return err
	}
	release, err := s.takeSlot(by.LimitKey())
	if err != nil {
		return err
	}
	defer release()
	id, err := s.findSession(ctx, w.Principal, hint)
	if err != nil {
		return err
	}
	w.User = q.User
	after, seq, _ := chat.LastEventID(h)
	reader, err := s.Turns.Begin(ctx, Request{
		Session: id, Cluster: cluster, Who: w, RequestID: chat.CallerRequestID(h), Chat: q, After: Place{Turn: after, Seq: seq},
	})
	if err != nil {
		return err
	}
	defer reader.Close()
	return s.sendStream(c, reader, frameFormat{profile, chat.WantsIDs(h)}, func() { s.Meter.FirstEvent(time.Since(began)) })
}

// findSession returns the session of a request: the one it names, the one of an action it quotes, or a new one.
func (s *Streams) findSession(ctx context.Context, principal string, hint chat.SessionHint) (string, error) {
	if hint.ID != "" {
		return hint.ID, nil
	}
	var ids []uuid.UUID
	for _, text := range hint.Quoted {
		if id, err := uuid.Parse(text); err == nil {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		if id, err := s.Actions.Quoted(ctx, principal, ids); err != nil || id != "" {
			return id, err
		}
	}
	id, err := uuid.NewV7()
	return id.String(), err
}

// ServeReplay answers GET /v1/events/replay/{session_id}.
func (s *Streams) ServeReplay(c echo.Context) error {
	w := caller.Who(c)
	by, _ := caller.FromContext(c.Request().Context())
	release, err := s.takeSlot(by.LimitKey())
	if err != nil {
		return err
	}
	defer release()
	id := c.Param("session_id")
	if !chat.ValidSessionID(id) {
		return fault.SessionNotFound.New("There is no such session.")
	}
	h := c.Request().Header
	row, err := s.Sessions.Readable(c.Request().Context(), w, id)
	if err != nil {
		return err
	}
	number, seq, _ := chat.LastEventID(h)
	reader := s.Turns.Replay(row, Place{Turn: number, Seq: seq}, c.QueryParam("follow") == "true")
	defer reader.Close()
	ids := chat.WantsIDs(h) || c.QueryParam("ids") == "true"
	return s.sendStream(c, reader, frameFormat{chat.ProfileOf(h, s.Model, ""), ids}, func() {})
}
