package store

import "context"

// Record is a record that may be absent, and is written as a whole.
type Record[R any] struct {
	Key string // unique among all lock keys
	Get func() (R, error)
	Put func() (R, error)
	// Told returns the ledger's view of it.
	Told func(R) any
}

// Replace writes the record and returns it with the details of the audit fact: its old value, if any, and its new one.
// The lock serialises writers even where there is no row yet, so that each is reported with its own change.
func Replace[R any](ctx context.Context, tx Tx, r Record[R]) (after R, details map[string]any, err error) {
	if err := tx.LockKeys(ctx, []string{r.Key}); err != nil {
		return after, nil, err
	}
	details = map[string]any{}
	before, err := r.Get()
	switch {
	case err == nil:
		details["old"] = r.Told(before)
	case !None(err):
		return after, nil, err
	}
	if after, err = r.Put(); err != nil {
		return after, nil, err
	}
	details["new"] = r.Told(after)
	return after, details, nil
}
