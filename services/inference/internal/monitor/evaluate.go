package monitor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mlp-platform/platform/services/inference/internal/drift"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

const (
	// readRows limits the snapshots that one statement reads and sorts, which it does in memory.
	readRows = 10_000
	// memoTime limits how long a status is kept: snapshots expire, and those of another replica may become
	// visible behind newer ones.
	memoTime = 30 * time.Second
)

// memo keeps the status of places whose newest snapshot and baseline stay the same. To read and compare a
// window costs a millisecond or two, most of it for pages of the table; most models of a large registry
// answer nothing between two looks at them.
type memo struct {
	mu   sync.Mutex // guards kept
	kept map[place]remembered
}

// remembered is a status with its inputs.
type remembered struct {
	newest   int64 // id; 0 without a snapshot
	baseline time.Time
	at       time.Time
	status   status
}

func baselineTime(b *baseline) time.Time {
	if b == nil {
		return time.Time{}
	}
	return b.setAt
}

// get returns the status of a place if none of its inputs has changed.
func (m *memo) get(p place, newest int64, b *baseline, now time.Time) (status, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.kept[p]
	return r.status, ok && newest > 0 && r.newest == newest && r.baseline.Equal(baselineTime(b)) && now.Sub(r.at) < memoTime
}

func (m *memo) put(newest int64, st status, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[place]remembered{}
	}
	m.kept[st.place] = remembered{newest, baselineTime(st.baseline), now, st}
}

// evaluate compares the newest predictions of places with their baselines, and passes each on in order until
// that fails. It reads those of many places at once: with a statement each, hundreds of models would wait for
// the database one after the other.
func (m *Monitor) evaluate(ctx context.Context, places []place, baselines map[place]*baseline, window int, mode drift.Mode, each func(status) error) error {
	remember := window == DefaultWindow && mode == drift.Spread // the query of the leader and the views
	for batch := range slices.Chunk(places, max(1, readRows/window)) {
		found := make(map[place]status, len(batch))
		newest, now := map[place]int64{}, time.Now()
		missing := batch
		if remember {
			var err error
			if newest, err = m.newestSnapshots(ctx, batch); err != nil {
				return err
			}
			missing = nil
			for _, p := range batch {
				if st, ok := m.memo.get(p, newest[p], baselines[p], now); ok {
					found[p] = st
				} else {
					missing = append(missing, p)
				}
			}
		}
		// Each is passed on as soon as those before it are, so that results survive the end of ctx.
		passed := 0
		pass := func() error {
			for ; passed < len(batch); passed++ {
				st, ok := found[batch[passed]]
				if !ok {
					return nil
				}
				if err := each(st); err != nil {
					return err
				}
			}
			return nil
		}
		if len(missing) > 0 {
			if err := m.subject.compare(ctx, missing, baselines, window, mode, func(st status) error {
				m.setVersion(&st)
				found[st.place] = st
				if remember {
					m.memo.put(newest[st.place], st, now) // a snapshot that came in between makes newest differ next time
				}
				return pass()
			}); err != nil {
				return err
			}
		}
		if err := pass(); err != nil {
			return err
		}
	}
	return nil
}

// split gives the models and aliases of places, for statements.
func split(places []place) (models, aliases []string) {
	for _, p := range places {
		models, aliases = append(models, p.model), append(aliases, p.alias)
	}
	return models, aliases
}

// newestSnapshots are the ids of the places' newest snapshots.
func (m *Monitor) newestSnapshots(ctx context.Context, places []place) (map[place]int64, error) {
	models, aliases := split(places)
	rows, err := m.queries.NewestSnapshots(ctx, store.NewestSnapshotsParams{Models: models, Aliases: aliases, Kind: m.subject.kind()})
	if err != nil {
		return nil, err
	}
	out := make(map[place]int64, len(rows))
	for _, r := range rows {
		out[places[r.Place-1]] = r.ID
	}
	return out, nil
}

// setVersion sets the version of a place without snapshots: that of the loaded copy.
func (m *Monitor) setVersion(st *status) {
	if st.newest != nil {
		return
	}
	if e := m.catalog.Table().Model(st.model); e != nil && e.Aliases[st.alias] != nil {
		st.version = e.Aliases[st.alias].Version
	}
}
