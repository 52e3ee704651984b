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

// linger reads on after a request was refused, unless net/http itself has read the body or the caller sent none.
func linger(c echo.Context, body io.Reader, length int64) {
	r, res := c.Request(), c.Response()
	if res.Status < http.StatusBadRequest || !res.Committed || r.ProtoMajor != 1 || r.Header["Expect"] != nil {
		return // a caller who expects 100 Continue has sent nothing
	}
	if closes := res.Header().Get("Connection") == "close"; length > lingerFrom || length < 0 || closes && length > 0 {
		Linger(res.Writer, body)
	}
}

// LimitBody is http.MaxBytesReader over the request's body for a handler without a Server. The function that it returns
// is called once the answer is written.
func LimitBody(w http.ResponseWriter, r *http.Request, limit int64) (finish func()) {
	body := r.Body
	r.Body = http.MaxBytesReader(w, body, limit)
	return func() {
		if w.Header().Get("Connection") == "close" { // set by the reader
			Linger(w, body)
		}
	}
}

// Linger sends the answer that was written to w and then reads on for a while. A connection that closes on unread bytes
// is reset, and a caller who is still writing loses the answer that would have told it why.
func Linger(w http.ResponseWriter, body io.Reader) {
	controller := http.NewResponseController(w)
	if controller.Flush() != nil || controller.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, body, lingerBytes) // whatever ends it, the connection closes
}
