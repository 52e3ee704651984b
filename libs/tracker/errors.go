package tracker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Codes that the server answers with.
const (
	CodeNotFound         = "RESOURCE_DOES_NOT_EXIST"
	CodeAlreadyExists    = "RESOURCE_ALREADY_EXISTS"
	CodeInvalidParameter = "INVALID_PARAMETER_VALUE"
	CodeInvalidState     = "INVALID_STATE"
	CodeEndpointNotFound = "ENDPOINT_NOT_FOUND"
	CodeUnavailable      = "TEMPORARILY_UNAVAILABLE"
)

var (
	// ErrUnavailable means no answer, or one that tells the client to retry later.
	ErrUnavailable = errors.New("tracker unavailable")
	// ErrNotFound means that the named object does not exist.
	ErrNotFound = errors.New("not in the tracker")
	// ErrExists means that the name is taken.
	ErrExists = errors.New("already in the tracker")
	// ErrTooLarge means that an artifact, or a model in all, exceeds the bound of [MaxDownload].
	ErrTooLarge = errors.New("larger than this client downloads")
)

// Error is a refusal by the server.
type Error struct {
	Status  int    // HTTP status
	Code    string // error_code, such as [CodeNotFound]; empty if the answer was not the server's own
	Message string
	Op      string // method and path of the call
}

func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("tracker: %s: HTTP %d: %s", e.Op, e.Status, e.Message)
	}
	return fmt.Sprintf("tracker: %s: %s: %s", e.Op, e.Code, e.Message)
}

// Is matches the sentinels of this package.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNotFound:
		return e.Code == CodeNotFound
	case ErrExists:
		return e.Code == CodeAlreadyExists
	case ErrUnavailable:
		return e.Code == CodeUnavailable || retryableStatus(e.Status)
	}
	return false
}

func retryableStatus(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Limits in bytes of the part of a refusal that is read, and of the part that is kept: it goes to logs and to callers.
const (
	maxErrorBody = 64 << 10
	maxCode      = 64
	maxMessage   = 2 << 10
	maxPage      = 300
)

func truncateText(s string, limit int) string {
	for len(s) > limit || !utf8.ValidString(s) {
		s = s[:min(len(s)-1, limit)]
	}
	return s
}

// ErrUnreadable is wrapped by the error of a call that another program must have answered.
var ErrUnreadable = errors.New("is not what an MLflow 3 server gives (is the address right?)")

func decodeError(op string, resp *http.Response) error {
	e := &Error{Status: resp.StatusCode, Op: op}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	var body struct {
		Code    string `json:"error_code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(b, &body) == nil && body.Code != "" {
		e.Code, e.Message = truncateText(body.Code, maxCode), truncateText(body.Message, maxMessage)
		return e
	}
	// A proxy's page, or the framework below the real server.
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "�")), " ")
	if text == "" && err == nil {
		text = http.StatusText(resp.StatusCode)
	}
	e.Message = truncateText(text, maxPage)
	// The artifact endpoints of some releases answer with a bare 404.
	if resp.StatusCode == http.StatusNotFound && strings.Contains(op, artifactsPath) {
		e.Code = CodeNotFound
	}
	return e
}

func transportError(op string, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("tracker: %s: %w", op, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, op, err)
}
