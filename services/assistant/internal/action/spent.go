package action

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// forgetContent removes the values that an ended action would have written. Its command, diff
// and targets, which hold no secret, still describe it.
func forgetContent(ctx context.Context, tx store.Tx, a Action) error {
	kept := make([]operation.Expanded, len(a.Operations))
	for i, e := range a.Operations {
		e.Patch, e.Manifest, e.Arguments = "", "", ""
		e.Set = withoutValues(e.Set)
		kept[i] = e
	}
	ops, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("operations: %w", err)
	}
	return tx.SpendAction(ctx, store.SpendActionParams{ID: a.ID, Operations: ops})
}

func withoutValues(set map[string]string) map[string]string {
	if set == nil {
		return nil
	}
	names := make(map[string]string, len(set))
	for name := range set {
		names[name] = ""
	}
	return names
}
