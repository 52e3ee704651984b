// Package snapshot records predictions outside the request's path: a bounded queue, batches by COPY, and a count of
// dropped records.
package snapshot

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

// Source is the way a request came.
type Source string

// The sources.
const (
	HTTP     Source = "http"
	Pipeline Source = "pipeline"
	V2       Source = "v2"
	Bus      Source = "bus"
	Shadow   Source = "shadow" // scored in addition to another alias's answer
)

// Kind is the kind of a model's answer.
type Kind uint8

// The kinds: a number, a class named by a number, a class named by a text; none for a request that was refused
// because of its input.
const (
	Number Kind = iota
	NumberLabel
	TextLabel
	Refused
)

// Record is one answered prediction.
type Record struct {
	Model, Alias, Version string
	Prediction            float64
	Label                 string // of a model that answers text labels
	Kind                  Kind
	Source                Source
	JobID                 string
	Input                 schema.Input
	TS                    time.Time
	Took                  time.Duration // from the request to its answer
}

const (
	batchRows = 1000
	batchWait = 250 * time.Millisecond
	maxText   = 255 // bytes of a label or job id
	// keepRows and keepAge limit the rows kept per model and alias.
	keepRows = 10_000
	keepAge  = 30 * 24 * time.Hour
	// keepRefused limits the refused inputs that are kept per model and alias.
	keepRefused = 1000
	// pruneEvery is how many new rows of a model and alias make it worth deleting old ones.
	pruneEvery = 5000
	// rest is how long the writer pauses after a batch, in multiples of the batch's time: snapshots may use a fifth of
	// the database's and this process's time; under more load, snapshots are dropped rather than predictions delayed.
	rest = 4
	// writeTimeout limits one batch or deletion.
	writeTimeout = 10 * time.Second
	retryFirst   = 200 * time.Millisecond
	retryMost    = 5 * time.Second
)

// Writer takes records from any goroutine and writes them in one.
type Writer struct {
	pool    *pgxpool.Pool
	queries *store.Queries
	metrics *metrics.Set
	log     *slog.Logger
	queue   chan Record
	written map[kept]int // rows since the last deletion
}

// kept identifies a set of rows with a size limit.
type kept struct {
	model, alias string
	refused      bool
}

// New returns a writer whose queue holds size records.
func New(pool *pgxpool.Pool, size int, m *metrics.Set, log *slog.Logger) *Writer {
	return &Writer{pool: pool, queries: store.New(pool), metrics: m, log: log, queue: make(chan Record, size), written: map[kept]int{}}
}

// Put queues a record, or drops and counts it when the queue is full. It never blocks.
func (w *Writer) Put(r Record) {
	select {
	case w.queue <- r:
	default:
		w.metrics.SnapshotDropped.Inc()
	}
}

// Run writes until ctx ends, then writes the rest of the queue.
func (w *Writer) Run(ctx context.Context) error {
	expire := time.NewTicker(time.Hour)
	defer expire.Stop()
	flush := time.NewTicker(batchWait)
	defer flush.Stop()
	batch := make([]Record, 0, batchRows)
	for {
		select {
		case <-ctx.Done():
			w.last(ctx, batch)
			return nil
		case r := <-w.queue:
			if batch = append(batch, r); len(batch) < batchRows {
				continue
			}
		case <-flush.C:
			if len(batch) == 0 {
				continue
			}
		case <-expire.C:
			w.expire(ctx)
			continue
		}
		began := time.Now()
		w.write(ctx, batch)
		w.prune(ctx, batch)
		batch = batch[:0]
		pauseFor(ctx, min(rest*time.Since(began), batchWait))
	}
}

// last writes the remaining records when the service stops, with one attempt.
func (w *Writer) last(ctx context.Context, batch []Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	for {
		select {
		case r := <-w.queue:
			if batch = append(batch, r); len(batch) < batchRows {
				continue
			}
		default:
		}
		if len(batch) == 0 {
			return
		}
		if err := w.copy(ctx, batch); err != nil {
			w.metrics.SnapshotDropped.Add(float64(len(batch) + len(w.queue)))
			w.log.WarnContext(ctx, "snapshots lost at the stop", slog.Int("rows", len(batch)+len(w.queue)), slog.Any("err", err))
			return
		}
		batch = batch[:0]
	}
}

// write repeats while the database is away, as the queue behind it fills; a batch that the database
// refuses is dropped. The stop ends the repeating, not a batch on its way: that one would be lost.
func (w *Writer) write(ctx context.Context, batch []Record) {
	for delay := retryFirst; ; delay = min(2*delay, retryMost) {
		err := w.copy(context.WithoutCancel(ctx), batch)
		if err == nil {
			return
		}
		if ctx.Err() != nil || !postgres.Unavailable(err) {
			w.metrics.SnapshotDropped.Add(float64(len(batch)))
			w.log.WarnContext(ctx, "snapshots dropped", slog.Int("rows", len(batch)), slog.Any("err", err))
			return
		}
		if delay == retryFirst {
			w.log.WarnContext(ctx, "snapshots wait for the database", slog.Any("err", err))
		}
		pauseFor(ctx, delay)
	}
}

var columns = []string{"model", "alias", "version", "prediction", "label", "source", "job_id", "norm", "mean", "std", "ts", "seconds", "zeros", "features"}

// refusedColumns are the columns of refused inputs, whose other values are unknown.
var refusedColumns = []string{"model", "alias", "version", "source", "ts"}

// copy writes a batch as a whole: a partial write would be repeated when the batch is retried.
func (w *Writer) copy(ctx context.Context, batch []Record) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var refused [][]any
	for i := range batch {
		if r := &batch[i]; r.Kind == Refused {
			refused = append(refused, []any{r.Model, r.Alias, r.Version, string(r.Source), r.TS})
		}
	}
	if refused == nil {
		n, err := w.pool.CopyFrom(ctx, pgx.Identifier{"snapshots"}, columns, &rows{batch: batch})
		w.metrics.SnapshotRows.Add(float64(n))
		return err
	}
	answered := make([]Record, 0, len(batch)-len(refused))
	for _, r := range batch {
		if r.Kind != Refused {
			answered = append(answered, r)
		}
	}
	err := postgres.InTx(ctx, w.pool, func(tx pgx.Tx) error {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"refused_inputs"}, refusedColumns, pgx.CopyFromRows(refused)); err != nil {
			return err
		}
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"snapshots"}, columns, &rows{batch: answered})
		return err
	})
	if err == nil {
		w.metrics.SnapshotRows.Add(float64(len(batch)))
	}
	return err
}

// rows is a batch as a source of COPY.
type rows struct {
	batch  []Record
	values [14]any
}

func (r *rows) Next() bool { return len(r.batch) > 0 }
func (r *rows) Err() error { return nil }

func (r *rows) Values() ([]any, error) {
	rec := &r.batch[0]
	r.batch = r.batch[1:]
	var prediction, label, job, features any
	switch rec.Kind {
	case TextLabel:
		label = storable(rec.Label)
	case NumberLabel:
		prediction, label = rec.Prediction, strconv.FormatFloat(rec.Prediction, 'f', -1, 64)
	default:
		prediction = rec.Prediction
	}
	if f := rec.Input.Features.JSON(); f != nil {
		features = f
	}
	if rec.JobID != "" {
		job = storable(rec.JobID)
	}
	r.values = [...]any{rec.Model, rec.Alias, rec.Version, prediction, label, string(rec.Source), job, rec.Input.Norm, rec.Input.Mean, rec.Input.Std, rec.TS,
		float32(rec.Took.Seconds()), rec.Input.Zeros, features}
	return r.values[:], nil
}

// storable makes a text that the database accepts from any text of a model or caller: one record must not drop its
// batch.
func storable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s[:min(len(s), maxText)], "\x00", ""), "")
}

// prune deletes all but the newest keepRows of each model and alias that has many new rows.
func (w *Writer) prune(ctx context.Context, batch []Record) {
	for i := range batch {
		w.written[kept{batch[i].Model, batch[i].Alias, batch[i].Kind == Refused}]++
	}
	for key, n := range w.written {
		if n < pruneEvery {
			continue
		}
		delete(w.written, key)
		if _, err := w.bounded(ctx, func(ctx context.Context) (int64, error) {
			if key.refused {
				return w.queries.PruneRefusedInputs(ctx, store.PruneRefusedInputsParams{Model: key.model, Alias: key.alias, Keep: keepRefused})
			}
			return w.queries.PruneSnapshots(ctx, store.PruneSnapshotsParams{Model: key.model, Alias: key.alias, Keep: keepRows})
		}); err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "old snapshots not deleted", slog.String("model", key.model), slog.Any("err", err))
		}
	}
}

func (w *Writer) expire(ctx context.Context) {
	n, err := w.bounded(ctx, func(ctx context.Context) (int64, error) {
		before := time.Now().Add(-keepAge)
		if _, err := w.queries.ExpireRefusedInputs(ctx, before); err != nil {
			return 0, err
		}
		return w.queries.ExpireSnapshots(ctx, before)
	})
	if err != nil && ctx.Err() == nil {
		w.log.WarnContext(ctx, "expired snapshots not deleted", slog.Any("err", err))
	}
	if n > 0 {
		w.log.InfoContext(ctx, "expired snapshots deleted", slog.Int64("rows", n))
	}
}

func (w *Writer) bounded(ctx context.Context, fn func(context.Context) (int64, error)) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return fn(ctx)
}

func pauseFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
