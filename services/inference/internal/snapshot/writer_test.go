package snapshot

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func setupWriter(t *testing.T, queue int) (*Writer, *pgxpool.Pool, *metrics.Set) {
	t.Helper()
	ctx := context.Background()
	url := testenv.Migrated(t, "snapshots", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, store.Schema, store.Migrations())
	})
	pool, err := postgres.Open(ctx, url, store.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	set := metrics.New(prometheus.NewRegistry())
	return New(pool, queue, set, slog.New(slog.DiscardHandler)), pool, set
}

func newRecord(n int) Record {
	return Record{Model: "M", Alias: "Production", Version: "1", Prediction: float64(n), Source: HTTP, TS: time.Now()}
}

func runWriter(t *testing.T, w *Writer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func countSnapshots(t *testing.T, pool *pgxpool.Pool) (n int, newest float64) {
	t.Helper()
	var last *float64
	if err := pool.QueryRow(context.Background(), "select count(*), max(prediction) from snapshots").Scan(&n, &last); err != nil {
		t.Fatal(err)
	}
	if last != nil {
		newest = *last
	}
	return n, newest
}

func TestWritesWhatIsQueuedAtTheStop(t *testing.T) {
	t.Parallel()
	w, pool, set := setupWriter(t, 5000)
	for n := range 2500 {
		w.Put(newRecord(n))
	}
	runWriter(t, w)()
	if n, newest := countSnapshots(t, pool); n != 2500 || newest != 2499 {
		t.Errorf("%d rows, newest %v; want n == 2500 && newest == 2499", n, newest)
	}
	if got := testutil.ToFloat64(set.SnapshotRows); got != 2500 {
		t.Errorf("%v rows counted; want 2500", got)
	}
}

// A batch in progress at the stop is completed.
func TestStopAmidABatch(t *testing.T) {
	t.Parallel()
	w, pool, set := setupWriter(t, 5000)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	batch := make([]Record, batchRows)
	for n := range batch {
		batch[n] = newRecord(n)
	}
	w.write(ctx, batch)
	if n, newest := countSnapshots(t, pool); n != batchRows || newest != batchRows-1 {
		t.Errorf("%d rows, newest %v; want n == batchRows && newest == batchRows - 1", n, newest)
	}
	if got := testutil.ToFloat64(set.SnapshotDropped); got != 0 {
		t.Errorf("%v dropped; want 0", got)
	}
}

// A text that the database does not take, or that is too long, drops no record.
func TestHostileTextsDropNoBatch(t *testing.T) {
	t.Parallel()
	w, pool, set := setupWriter(t, 10)
	for _, text := range []string{"a\x00b", "bad \xff utf-8", strings.Repeat("é", 10_000), "good"} {
		r := newRecord(1)
		r.Kind, r.Label, r.JobID = TextLabel, text, text
		w.Put(r)
	}
	runWriter(t, w)()
	var labels, jobs string
	if err := pool.QueryRow(context.Background(), "select string_agg(label, '|' order by id), string_agg(job_id, '|' order by id) from snapshots").Scan(&labels, &jobs); err != nil {
		t.Fatal(err)
	}
	if want := "ab|bad  utf-8|" + strings.Repeat("é", 127) + "|good"; labels != want || jobs != want {
		t.Errorf("got labels %q and jobs %q, want %q", labels, jobs, want)
	}
	if got := testutil.ToFloat64(set.SnapshotDropped); got != 0 {
		t.Errorf("%v dropped; want 0", got)
	}
}

func TestFullQueueDropsAndCounts(t *testing.T) {
	t.Parallel()
	w, _, set := setupWriter(t, 10)
	for n := range 25 {
		w.Put(newRecord(n))
	}
	if got := testutil.ToFloat64(set.SnapshotDropped); got != 15 {
		t.Errorf("%v dropped, want 15", got)
	}
}

func TestKindsOfPredictions(t *testing.T) {
	t.Parallel()
	w, pool, _ := setupWriter(t, 10)
	number, label, text, empty := newRecord(1), newRecord(2), newRecord(3), newRecord(4)
	label.Kind, label.Prediction = NumberLabel, -1
	text.Kind, text.Label = TextLabel, "high"
	empty.Kind = TextLabel
	for _, r := range []Record{number, label, text, empty} {
		w.Put(r)
	}
	runWriter(t, w)()
	var got string
	if err := pool.QueryRow(context.Background(),
		"select string_agg(coalesce(prediction::text, 'null') || ' ' || coalesce('''' || label || '''', 'null'), ', ' order by id) from snapshots").Scan(&got); err != nil {
		t.Fatal(err)
	}
	if want := "1 null, -1 '-1', null 'high', null ''"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
}

func TestKeepsTheNewest(t *testing.T) {
	t.Parallel()
	w, pool, _ := setupWriter(t, 40_000)
	const sent = keepRows + 2*pruneEvery
	for n := range sent {
		w.Put(newRecord(n))
	}
	old := newRecord(-1)
	old.Alias = "Staging" // another alias keeps its own
	w.Put(old)
	stop := runWriter(t, w)
	testenv.Eventually(t, 20*time.Second, func() error {
		if n, newest := countSnapshots(t, pool); n > keepRows+pruneEvery || newest != sent-1 {
			return fmt.Errorf("%d rows, newest %v", n, newest)
		}
		return nil
	})
	stop()
	var oldest float64
	var staging int
	if err := pool.QueryRow(context.Background(),
		"select min(prediction) filter (where alias = 'Production'), count(*) filter (where alias = 'Staging') from snapshots").Scan(&oldest, &staging); err != nil {
		t.Fatal(err)
	}
	if oldest > pruneEvery*2 || staging != 1 {
		t.Errorf("oldest kept is %v, %d rows of the other alias; want oldest <= pruneEvery * 2 && staging == 1", oldest, staging)
	}
}

func TestExpires(t *testing.T) {
	t.Parallel()
	w, pool, _ := setupWriter(t, 10)
	r := newRecord(1)
	r.TS = time.Now().Add(-keepAge - time.Hour)
	w.Put(r)
	w.Put(newRecord(2))
	runWriter(t, w)()
	w.expire(context.Background())
	if n, newest := countSnapshots(t, pool); n != 1 || newest != 2 {
		t.Errorf("%d rows left, newest %v; want n == 1 && newest == 2", n, newest)
	}
}

// A broken producer pushes no prediction out, and its own rows do not grow without end.
func TestRefusedInputsPushNoPredictionsOut(t *testing.T) {
	t.Parallel()
	w, pool, _ := setupWriter(t, 40_000)
	const refused = keepRows + 2*pruneEvery
	for n := range 20 {
		w.Put(newRecord(n))
	}
	for range refused {
		r := newRecord(0)
		r.Kind = Refused
		w.Put(r)
	}
	w.Put(newRecord(20))
	stop := runWriter(t, w)
	var rows, left int
	testenv.Eventually(t, 20*time.Second, func() error {
		rows, _ = countSnapshots(t, pool)
		if err := pool.QueryRow(context.Background(), "select count(*) from refused_inputs").Scan(&left); err != nil {
			return err
		}
		if rows != 21 || left == 0 || left > keepRefused+pruneEvery {
			return fmt.Errorf("%d predictions and %d refused inputs; want 21 and from 1 to %d", rows, left, keepRefused+pruneEvery)
		}
		return nil
	})
	stop()
	var newer bool
	if err := pool.QueryRow(context.Background(), "select (select max(id) from snapshots) > (select min(id) from refused_inputs)").Scan(&newer); err != nil || !newer {
		t.Errorf("the last prediction is newer than the first refusal: %t, %v; want true", newer, err)
	}
}
