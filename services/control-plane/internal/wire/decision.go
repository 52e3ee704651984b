package wire

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

// MaxReason limits the reason of a decision, in bytes.
const MaxReason = 4096

// PathID reads the path parameter id. An id that is not a UUID does not exist.
func PathID(c echo.Context, missing problem.Kind) (uuid.UUID, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return uuid.Nil, missing.New("The id is not a UUID, so it names nothing here.")
	}
	return id, nil
}

// Reason reads the optional body of a decision.
func Reason(c echo.Context) (string, error) {
	var body api.DecisionReason
	if err := DecodeOptional(c, &body); err != nil || body.Reason == nil {
		return "", err
	}
	if len(*body.Reason) > MaxReason {
		return "", fault.Invalid(fmt.Sprintf("is longer than %d bytes", MaxReason), "body", "reason")
	}
	return *body.Reason, nil
}
