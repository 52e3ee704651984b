package drawer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	wire "github.com/mlp-platform/platform/clients/go/assistant"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
)

// clusterHeader names the cluster of a new session to the assistant.
const clusterHeader = "X-Cluster"

// maxCluster limits the name of a cluster, in bytes; the assistant has the same limit.
const maxCluster = 253

// ListClusters serves GET /api/v1/assistant/clusters.
func (d *Drawer) ListClusters(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	// The assistant names its clusters beside the namespaces of the default one, and also while that one is down.
	resp, body, err := d.fetch(c, func(ctx context.Context, client *wire.Client) (*http.Response, error) {
		return client.ListNamespaces(ctx, nil)
	})
	if err != nil {
		return err
	}
	answer := api.AssistantClusters{Clusters: []string{}}
	ok := resp.StatusCode/100 == 2
	if ok || resp.StatusCode == http.StatusServiceUnavailable {
		var told api.AssistantClusters
		if json.Unmarshal(body, &told) == nil && len(told.Clusters) > 0 {
			answer, ok = told, true
		}
	}
	if !ok {
		return assistant.ExplainRefusal(resp, keyOf(caller.From(c)))
	}
	return c.JSON(http.StatusOK, answer)
}

// readCluster returns the cluster that a question names; nil for none. Which ones there are, the assistant knows: here a
// name must only be fit for a header.
func readCluster(name *string) (*string, error) {
	if name == nil || *name == "" {
		return nil, nil
	}
	if len(*name) > maxCluster || strings.ContainsFunc(*name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, input.Invalid("must be at most 253 visible characters of ASCII", "body", "cluster")
	}
	return name, nil
}

// locateCluster names the member of the question where the assistant's refusal names the header that was made of it.
func locateCluster(err error) error {
	var refused *problem.Error
	if !errors.As(err, &refused) || refused.Status() != http.StatusUnprocessableEntity {
		return err
	}
	for _, field := range refused.Errors {
		if slices.Contains(field.Loc, clusterHeader) {
			return input.Invalid(field.Msg, "body", "cluster")
		}
	}
	return err
}
