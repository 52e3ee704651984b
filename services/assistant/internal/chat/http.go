package chat

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/sse"
)

// Read reads and validates a chat request, in the order of the API: 415, 413, 422. limit is the largest body in bytes.
// The limits in service.Options.BodyLimits, both for this route and for "" (no route), must be higher: the server
// checks its own limit before route and caller.
func Read(c echo.Context, limit int64) (Request, SessionHint, error) {
	r, err := readRequest(c, limit)
	if err != nil {
		return Request{}, SessionHint{}, err
	}
	hint, err := HintOf(c.Request().Header, r)
	return r, hint, err
}

func readRequest(c echo.Context, limit int64) (Request, error) {
	r := c.Request()
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return Request{}, problem.UnsupportedMedia.New("Send the body as JSON, with the header Content-Type: application/json.")
	}
	if r.ContentLength > limit {
		c.Response().Header().Set("Connection", "close") // instead of reading the rest
		return Request{}, problem.BodyTooLarge.New(fmt.Sprintf("The request body is larger than %d bytes.", limit))
	}
	r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, limit)
	raw, err := service.ReadBody(c)
	if err != nil {
		return Request{}, err
	}
	return Parse(raw)
}

// Profile is how a stream is rendered.
type Profile int

// The profiles.
const (
	Canonical Profile = iota
	Strict            // nothing but chat-completions chunks and comments
)

// strictSuffix on the model's id selects the strict profile, for clients that cannot set headers.
const strictSuffix = "-openai"

// ProfileOf returns the profile of a request. model is the service's model name, asked the one in the body.
func ProfileOf(h http.Header, model, asked string) Profile {
	if strings.EqualFold(h.Get("X-Stream-Profile"), "openai") || asked == model+strictSuffix {
		return Strict
	}
	return Canonical
}

// WantsIDs reports whether the stream must carry event ids.
func WantsIDs(h http.Header) bool { return strings.EqualFold(h.Get("X-Stream-Ids"), "true") }

// SetHeaders prepares the header of a stream.
func SetHeaders(h http.Header, sessionID string) {
	h.Set("Content-Type", sse.ContentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // or nginx would buffer frames
	h.Set(SessionHeader, sessionID)
}

// ServeList answers GET /v1/models.
func (m Models) ServeList(c echo.Context) error {
	return c.JSONBlob(http.StatusOK, m.List())
}

// ServeOne answers GET /v1/models/{model}.
func (m Models) ServeOne(c echo.Context) error {
	doc, err := m.Get(c.Param("model"))
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, doc)
}
