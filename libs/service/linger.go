package service

import (
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// What is read of a refused request's body once it is answered.
const (
	lingerBytes = 16 << 20
	lingerTime  = 5 * time.Second
	// net/http itself reads shorter bodies to their end before it answers.
	lingerFrom = 256 << 10
)

// linger answers a refused request at once and then reads on for a while. A connection that closes on unread bytes is
// reset, and a caller who is still writing loses the answer that would have told it why.
func linger(c echo.Context, body io.Reader, length int64) {
	r, res := c.Request(), c.Response()
	if res.Status < http.StatusBadRequest || !res.Committed || r.ProtoMajor != 1 || r.Header["Expect"] != nil {
		return // a caller who expects 100 Continue has sent nothing
	}
	if length >= 0 && length <= lingerFrom && res.Header().Get("Connection") != "close" || length == 0 {
		return
	}
	if http.NewResponseController(res.Writer).Flush() != nil {
		return
	}
	setReadDeadline(c, time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, body, lingerBytes) // whatever ends it, the connection closes
}
