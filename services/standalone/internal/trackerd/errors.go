package trackerd

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
)

// refusal is an error as the interface knows it.
type refusal struct {
	status  int
	Code    string `json:"error_code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

func invalidParameter(format string, a ...any) error {
	return &refusal{http.StatusBadRequest, "INVALID_PARAMETER_VALUE", fmt.Sprintf(format, a...)}
}

func notFound(format string, a ...any) error {
	return &refusal{http.StatusNotFound, "RESOURCE_DOES_NOT_EXIST", fmt.Sprintf(format, a...)}
}

func alreadyExists(format string, a ...any) error {
	return &refusal{http.StatusBadRequest, "RESOURCE_ALREADY_EXISTS", fmt.Sprintf(format, a...)}
}

func missingParameter(param string) error {
	return invalidParameter("Missing value for required parameter '%s'. See the API docs for more information about request parameters.", param)
}

// orNotFound converts a missing row to a refusal.
func orNotFound(err error, format string, a ...any) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return notFound(format, a...)
	}
	return err
}
