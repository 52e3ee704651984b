package orchestratord

import (
	"fmt"
	"net/http"
	"strings"
)

// problem is the body of an error: detail for the server's own refusals, exception_message and exception_detail for
// refusals by a real server's framework. The request body is not sent back: it may hold secrets.
type problem struct {
	Detail  string  `json:"detail,omitempty"`
	Message string  `json:"exception_message,omitempty"`
	Faults  []fault `json:"exception_detail,omitempty"`
}

type fault struct {
	Type string   `json:"type"`
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
}

// refusal is an error with a status and a body.
type refusal struct {
	status int
	body   problem
}

func (r *refusal) Error() string {
	if r.body.Detail != "" {
		return r.body.Detail
	}
	return r.body.Message
}

func refuseRequest(status int, format string, a ...any) error {
	return &refusal{status, problem{Detail: fmt.Sprintf(format, a...)}}
}

func notFound(what string) error { return refuseRequest(http.StatusNotFound, "%s not found", what) }

// absentAsNotFound turns the absence of a row into 404.
func absentAsNotFound(err error, what string) error {
	if isNoRows(err) {
		return notFound(what)
	}
	return err
}

// invalidMember refuses a member of the body, named by its path.
func invalidMember(loc string, format string, a ...any) error {
	path := []string{"body"}
	if loc != "" {
		path = append(path, strings.Split(loc, ".")...)
	}
	return &refusal{http.StatusUnprocessableEntity, problem{
		Message: "Invalid request received.",
		Faults:  []fault{{Type: "value_error", Loc: path, Msg: fmt.Sprintf(format, a...)}},
	}}
}
