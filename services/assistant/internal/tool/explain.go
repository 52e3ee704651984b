package tool

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	explain "k8s.io/kubectl/pkg/explain/v2"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/clip"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// explain shows the server's own schema of a kind or field, by kubectl's printer.
func (c *call) explain(ctx context.Context) (turn.Output, error) {
	r, err := c.Cluster.Resolve(ctx, c.op.Kind)
	if err != nil {
		return turn.Output{}, err
	}
	if c.op.APIVersion != "" {
		gv, err := schema.ParseGroupVersion(c.op.APIVersion)
		if err != nil {
			return turn.Output{}, operation.Refuse(operation.InvalidArgument, "api_version", "%s is no API version.", operation.Quote(c.op.APIVersion))
		}
		r.Group, r.Version = gv.Group, gv.Version
	}
	var path []string
	if c.op.Path != "" {
		path = strings.Split(c.op.Path, ".")
	}
	const noDepthLimit = 0 // the answer is clipped below
	var b bytes.Buffer
	done := make(chan error, 1)
	go func() { // the schema's client takes no context; its call ends by the client's own limit
		done <- explain.PrintModelDescription(path, &b, c.Cluster.Discovery().OpenAPIV3(), r.GVR(), c.op.Recursive, noDepthLimit, "plaintext")
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		return turn.Output{}, context.Cause(ctx)
	}
	if err != nil {
		if strings.Contains(err.Error(), "does not exist") || strings.Contains(err.Error(), "couldn't find") {
			return turn.Output{}, operation.Refuse(operation.NotFound, "path", "%s has no field %s.", r.Kind, operation.Quote(c.op.Path))
		}
		return turn.Output{}, fmt.Errorf("explain %s: %w", r.Kind, err)
	}
	text, cut := clip.Head(b.String(), maxCharacters, "name a field in path")
	return turn.Output{Text: text, Truncated: cut}, nil
}
