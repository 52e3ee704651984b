package snapshot

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	pageSize = 500
	maxPages = 100 // of one kind
)

// lister is a typed client's List.
type lister[L any] func(context.Context, metav1.ListOptions) (L, error)

// paged is the metadata of every list.
type paged interface {
	GetContinue() string
	GetRemainingItemCount() *int64
}

// readAllPages reads every page of a list. A kind that the server does not serve is empty. whole is false if there were
// more pages than the limit.
func readAllPages[L paged, T any](ctx context.Context, list lister[L], items func(L) []T, o metav1.ListOptions) (found []T, whole bool, err error) {
	o.Limit = pageSize
	for page := 0; page < maxPages; page++ {
		l, err := list(ctx, o)
		switch {
		case apierrors.IsNotFound(err):
			return nil, true, nil
		case apierrors.IsResourceExpired(err) && o.Continue != "":
			// The continue token has expired: the list is read again, in one piece.
			o.Continue, o.Limit, found = "", 0, nil
			continue
		case err != nil:
			return nil, false, err
		}
		if more := l.GetRemainingItemCount(); more != nil && found == nil { // objects are large: none is copied twice
			found = make([]T, 0, len(items(l))+int(min(max(*more, 0), pageSize*maxPages)))
		}
		found = append(found, items(l)...)
		if o.Continue = l.GetContinue(); o.Continue == "" {
			return found, true, nil
		}
	}
	return found, false, nil
}
