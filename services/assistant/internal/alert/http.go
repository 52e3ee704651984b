package alert

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/limit"
)

// maxBody limits one notification, in bytes: thousands of alerts.
const maxBody = 4 << 20

// accepted is the answer to a notification.
type accepted struct {
	SessionID string `json:"session_id"`
}

// Serve answers POST /v1/alerts, behind the access control. Members that are not known are allowed: each version of
// Alertmanager may add some.
func (s *Service) Serve(c echo.Context) error {
	if err := limit.Body(c, maxBody); err != nil {
		return err
	}
	var n notification
	if err := service.DecodeJSON(c, &n, false); err != nil {
		return err
	}
	if err := n.check(); err != nil {
		return err
	}
	n.cluster = n.clusterOf(s.Clusters)
	id, err := s.take(c.Request().Context(), caller.Who(c), n)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, accepted{id})
}
