package drawer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/sse"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// Why a stream ends before the assistant has ended it.
var (
	errSlow  = errors.New("the assistant sent nothing for too long")
	errWhole = errors.New("the stream lasted too long")
	errDrain = errors.New("the dashboard shuts down")
)

// stream is a call whose response is a stream of frames.
type stream struct {
	session string
	do      call
	replay  bool // may end without [DONE]: an earlier answer may have broken off
}

// relayStream passes on a stream frame by frame, until its end or that of the caller's session.
func (d *Drawer) relayStream(c echo.Context, s stream) error {
	if d.drain.Err() != nil {
		return drainingFault()
	}
	who := caller.From(c)
	key := keyOf(who)
	client, err := d.Assistant.With(key, who)
	if err != nil {
		return assistant.ExplainCall(err)
	}
	followed, stop := d.FollowSession(c.Request().Context(), who)
	defer stop()
	ctx, stopWhole := context.WithTimeoutCause(followed, d.Limits.Whole, errWhole)
	defer stopWhole()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.drain, func() { cancel(errDrain) })()
	idle := time.AfterFunc(d.Limits.Answer, func() { cancel(errSlow) })
	defer idle.Stop()

	resp, err := s.do(ctx, client)
	if err != nil {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errSlow):
			err = context.DeadlineExceeded
		case errors.Is(cause, errDrain):
			return drainingFault()
		}
		return assistant.ExplainCall(err)
	}
	if resp.StatusCode != http.StatusOK {
		return assistant.ExplainRefusal(resp, key)
	}
	defer resp.Body.Close()
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || media != sse.ContentType {
		return fault.UpstreamUnavailable.New("The assistant sent no stream; see whether ASSISTANT_URL is its address.")
	}
	c.Response().Header().Set("X-Session-ID", s.session)
	out, err := sse.NewWriter(c.Response(), d.Limits.Write)
	if err != nil {
		return err
	}
	idle.Reset(d.Limits.Idle)
	done, err := copyFrames(out, resp.Body, func() { idle.Reset(d.Limits.Idle) })
	if errors.Is(err, io.EOF) && !done && !s.replay {
		err = io.ErrUnexpectedEOF
	}
	if errors.Is(err, io.EOF) || c.Request().Context().Err() != nil {
		return nil // complete, or the client has gone
	}
	code, message := explainEnd(ctx, followed)
	d.Log.WarnContext(ctx, "assistant stream ended early", slog.String("code", code), slog.Any("err", err))
	if !errors.Is(err, errClient) {
		_ = out.Send(endFrames(code, message)) // a browser that is gone needs no end
	}
	return nil
}

func drainingFault() error {
	return problem.Draining.New("The dashboard restarts; send the request again.").After(time.Second)
}

// errClient marks failures to write to the browser.
var errClient = errors.New("the browser does not read")

// copyFrames passes on whole frames and flushes each, up to an error, which is io.EOF at a clean end. done reports
// whether the last frame was [DONE].
func copyFrames(out *sse.Writer, in io.Reader, touch func()) (done bool, err error) {
	frames := sse.NewFrameReader(in)
	for {
		frame, err := frames.Next()
		if err != nil {
			return done, err
		}
		touch()
		if err := out.Send(frame.Raw); err != nil {
			return done, errors.Join(errClient, err)
		}
		done = frame.Done()
	}
}

// explainEnd returns the code and message of the error event that ends a broken stream.
func explainEnd(ctx, followed context.Context) (code, message string) {
	switch cause := context.Cause(ctx); {
	case followed.Err() != nil:
		return "session_ended", "Your session has ended; sign in again to continue."
	case errors.Is(cause, errDrain):
		return "shutting_down", "The dashboard is restarting; reopen the conversation to continue."
	case errors.Is(cause, errSlow), errors.Is(cause, errWhole):
		return "timeout", "The assistant has sent nothing for too long; open the conversation again to see what it has said since."
	}
	return "interrupted", "The assistant broke off; what it had said is above. Ask again, or open the conversation again."
}

// endFrames returns an error event as the assistant itself sends it, and the end of the stream.
func endFrames(code, message string) []byte {
	type event struct {
		Type    string `json:"type"`
		Fatal   bool   `json:"fatal"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	raw, err := json.Marshal(struct {
		ID      string     `json:"id"`
		Object  string     `json:"object"`
		Created int64      `json:"created"`
		Model   string     `json:"model"`
		Choices []struct{} `json:"choices"`
		Event   event      `json:"ki_event"`
	}{"dashboard", "chat.completion.chunk", time.Now().Unix(), "dashboard", []struct{}{}, event{"error", true, code, message}})
	if err != nil {
		panic(err) // strings and numbers are JSON
	}
	return append(append([]byte("data: "), raw...), "\n\ndata: [DONE]\n\n"...)
}

// recordTimeout limits how long an answer waits for its audit fact.
const recordTimeout = 2 * time.Second

// recordFailure adds to the record that a decision did not take effect.
func (d *Drawer) recordFailure(ctx context.Context, who caller.Caller, fact announce.Fact, err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer stop()
	p := problem.From(err)
	fact.Outcome = announce.Failed
	if p.Status() == http.StatusForbidden {
		fact.Outcome = announce.Denied
	}
	fact.Details["error_code"] = p.Kind.Code
	if err := d.Recorder.Record(ctx, who, fact); err != nil {
		d.Log.ErrorContext(ctx, "audit fact of a failed decision lost", slog.String("target", fact.Target), slog.Any("err", err))
	}
}
