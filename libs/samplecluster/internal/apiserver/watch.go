package apiserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

// maxWatch ends watches whose client set no limit; clients start the next one where this ended.
const maxWatch = 30 * time.Minute

func isWatch(r request) bool {
	v := r.URL.Query().Get("watch")
	return v == "true" || v == "1"
}

type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

func (s *Server) watch(w http.ResponseWriter, r request) error {
	match, err := parseSelectors(r)
	if err != nil {
		return err
	}
	seconds, err := parseNumber(r, "timeoutSeconds")
	if err != nil {
		return err
	}
	timeout := maxWatch
	if seconds > 0 && seconds < int64(maxWatch/time.Second) {
		timeout = time.Duration(seconds) * time.Second
	}
	gr, query := r.kind.GroupResource(), r.URL.Query()
	from := uint64(0)
	if v := query.Get("resourceVersion"); v != "" {
		if from, err = strconv.ParseUint(v, 10, 64); err != nil {
			return apierrors.NewBadRequest("invalid resourceVersion " + strconv.Quote(v))
		}
	}
	// shown holds the objects that the watcher has seen, so that one that stops matching is reported as deleted.
	shown := map[types.UID]bool{}
	var first []watchEvent
	whole := from == 0 || query.Get("sendInitialEvents") == "true"
	s.store.Do(func(tx store.Tx) {
		if from > tx.Version() {
			from = tx.Version()
		}
		for _, o := range tx.List(gr, r.namespace) {
			if match(o) {
				shown[o.GetUID()] = true
				if whole {
					first = append(first, watchEvent{watch.Added, o})
				}
			}
		}
		if whole {
			from = tx.Version()
		}
	})
	if query.Get("sendInitialEvents") == "true" && query.Get("allowWatchBookmarks") == "true" {
		mark := r.kind.New()
		mark.SetResourceVersion(strconv.FormatUint(from, 10))
		mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		first = append(first, watchEvent{watch.Bookmark, mark})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out, flush := json.NewEncoder(w), http.NewResponseController(w)
	for _, e := range first {
		if out.Encode(e) != nil {
			return nil
		}
	}
	stop := time.NewTimer(timeout)
	defer stop.Stop()
	for {
		if flush.Flush() != nil {
			return nil
		}
		moved, _ := s.store.Moved()
		changes, kept := s.store.Since(from)
		if !kept {
			_ = out.Encode(watchEvent{watch.Error, apierrors.NewResourceExpired("too old resource version").Status()})
			return nil
		}
		for _, c := range changes {
			from = c.Version
			if c.Key != gr || r.namespace != "" && c.Object.GetNamespace() != r.namespace {
				continue
			}
			e, tell := shownAs(c, match, shown)
			if tell && out.Encode(e) != nil {
				return nil
			}
		}
		if len(changes) > 0 {
			continue
		}
		select {
		case <-moved:
		case <-stop.C:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// shownAs converts a change for a watcher that sees only matching objects.
func shownAs(c store.Change, match func(resource.Object) bool, shown map[types.UID]bool) (watchEvent, bool) {
	uid := c.Object.GetUID()
	was, is := shown[uid], c.Type != watch.Deleted && match(c.Object)
	switch {
	case is && was:
		return watchEvent{watch.Modified, c.Object}, true
	case is:
		shown[uid] = true
		return watchEvent{watch.Added, c.Object}, true
	case was:
		delete(shown, uid)
		return watchEvent{watch.Deleted, c.Object}, true
	}
	return watchEvent{}, false
}
