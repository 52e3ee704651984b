// Package dataset reads the rows of datasets/<Name>.yaml: from files or generated, ordered by time, with the columns of
// history.
package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/history"
	"github.com/mlp-platform/platform/services/trainer/internal/source"
)

// DummyRows is the number of generated rows of a dummy run.
const DummyRows = 500

// Rows are the rows of a data set, sorted by submit time if the set has one.
type Rows struct {
	N int
	// Num holds NaN for a missing number, Cat "" for a missing category, Vec nil for a missing vector.
	Num map[string][]float64
	Cat map[string][]string
	Vec map[string][][]float32
	// File of each row, as an index into the files in their order; nil if generated.
	File []int
	// Dropped counts records that were left out while reading, such as failed jobs.
	Dropped int
	// Version identifies the exact data: the SHA-256 of the files' bytes, or the generator's settings.
	Version string
	// URI is the source of the rows, Origin how they came about (generated or recorded), Backend their reader.
	URI, Origin, Backend string

	// held estimates the size of the columns, in bytes.
	held int64
	// derived is the size of a row's history, in bytes.
	derived int64
	// start of the first log, from which the times of all are counted.
	start time.Time
}

// maxHeld limits the size of the columns of files and of their history, in bytes. With their growth, the order and the
// collector's slack this is less than a GiB.
const maxHeld = 384 << 20

// The size of a value in a column, in bytes, without its text.
const (
	numberBytes = 8
	textBytes   = 24 // the string and the rounding of its allocation
	vectorBytes = 24
	statsBytes  = 64 // of a row, while its history is made
)

func (r *Rows) checkHeld() error {
	if r.held+int64(r.N)*r.derived > maxHeld {
		return fmt.Errorf("the files hold more than %d MiB of values in the declared columns and their history, more than is read into memory; "+
			"declare only the columns and the history that the models use, list fewer files, or list a sample of the rows", maxHeld>>20)
	}
	return nil
}

// Source specifies the data to load.
type Source struct {
	// Repo is the folder of the model repository.
	Repo    string
	Set     *modelrepo.Dataset
	Backend string
	// Dummy requests DummyRows generated rows instead of the files.
	Dummy bool
	// Remote fetches files that are not local; nil: they are not fetched.
	Remote *source.Sources
	// CacheDir holds fetched files while they are read; empty is the system's temporary folder.
	CacheDir string
}

// Load reads or generates the rows.
func Load(ctx context.Context, s Source) (*Rows, error) {
	rows, err := loadRows(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", s.Set.Name, err)
	}
	return rows, nil
}

func loadRows(ctx context.Context, s Source) (*Rows, error) {
	var r *Rows
	var err error
	switch declared := s.Set.Backends.Declared(); {
	case s.Dummy:
		r, err = generateRows(s.Set, DummyRows)
	case !slices.Contains(modelrepo.BackendNames, s.Backend):
		return nil, fmt.Errorf("backend %q is unknown; want %s", s.Backend, strings.Join(modelrepo.BackendNames, ", "))
	case !slices.Contains(declared, s.Backend):
		return nil, fmt.Errorf("it declares no backend %q, only %s", s.Backend, strings.Join(declared, ", "))
	case s.Backend != modelrepo.BackendLocal:
		r, err = readRemote(ctx, s)
	case len(s.Set.Files) == 0:
		r, err = generateRows(s.Set, s.Set.Generator.Rows)
	default:
		r, err = readLocal(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	if r.N == 0 {
		return nil, fmt.Errorf("no rows in %s (%d left out); look at the files and the format", r.URI, r.Dropped)
	}
	if r.Backend == "" {
		r.Backend = s.Backend
	}
	if err := r.order(s.Set); err != nil {
		return nil, err
	}
	return r, r.derive(s.Set)
}

func readLocal(ctx context.Context, s Source) (*Rows, error) {
	root, err := os.OpenRoot(s.Repo)
	if err != nil {
		return nil, fmt.Errorf("open model repository: %w", err)
	}
	defer root.Close()
	var names []string
	for _, pattern := range s.Set.Files {
		found, err := fs.Glob(root.FS(), pattern)
		if err != nil {
			return nil, fmt.Errorf("files %q: %w", pattern, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no file matches %q in %s", pattern, s.Repo)
		}
		for _, f := range found {
			if !slices.Contains(names, f) {
				names = append(names, f)
			}
		}
	}
	files := make([]source.File, len(names))
	for i, name := range names {
		files[i] = source.File{Path: name, Name: name}
	}
	rows, err := readFiles(ctx, root, files, s.Set)
	if err == nil {
		rows.URI = strings.Join(names, ",")
	}
	return rows, err
}

// readFiles reads all files in their order.
func readFiles(ctx context.Context, root *os.Root, files []source.File, ds *modelrepo.Dataset) (*Rows, error) {
	all := newRows(ds)
	digest := sha256.New()
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := readFile(ctx, root, f.Path, i, ds, all, digest); err != nil {
			return nil, fmt.Errorf("%s: %w", listNames([]string{f.Name}), err)
		}
	}
	all.Version = "sha256:" + hex.EncodeToString(digest.Sum(nil))
	all.Origin = "recorded"
	return all, nil
}

func readFile(ctx context.Context, root *os.Root, name string, index int, ds *modelrepo.Dataset, into *Rows, digest hash.Hash) error {
	f, err := modelrepo.OpenRegular(root, name)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return err
	}
	defer f.Close()
	src := io.TeeReader(f, digest)
	before := into.N
	switch ds.Format {
	case "swf":
		err = readSWF(src, ds, into)
	case "csv":
		err = readCSV(src, ds, into)
	case "parquet":
		// Its table of contents is at its end; the digest is made first.
		var size int64
		if size, err = io.Copy(io.Discard, src); err == nil {
			err = readParquet(ctx, f, size, ds, into)
		}
	default:
		err = fmt.Errorf("format %q is not read by this build; it reads %s", ds.Format, strings.Join(modelrepo.Formats, ", "))
	}
	if err != nil {
		return err
	}
	// The readers stop at the end of the data; the rest belongs to the file's digest too.
	if _, err := io.Copy(io.Discard, src); err != nil {
		return err
	}
	for range into.N - before {
		into.File = append(into.File, index)
	}
	return nil
}

func newRows(ds *modelrepo.Dataset) *Rows {
	r := &Rows{Num: map[string][]float64{}, Cat: map[string][]string{}, Vec: map[string][][]float32{}}
	for name, c := range ds.Columns {
		switch c.Type {
		case modelrepo.Number:
			r.Num[name] = nil
		case modelrepo.Category:
			r.Cat[name] = nil
		case modelrepo.Vector:
			r.Vec[name] = nil
		}
	}
	for _, h := range ds.History {
		r.derived += numberBytes * int64(len(h.Stats))
	}
	if len(ds.History) > 0 {
		r.derived += statsBytes // of one history at a time
	}
	return r
}

// order sorts the rows by submit time; rows of the same second keep their order in the files.
func (r *Rows) order(ds *modelrepo.Dataset) error {
	if ds.Time.Submit == "" {
		return nil
	}
	submit := r.Num[ds.Time.Submit]
	for i, v := range submit {
		if math.IsNaN(v) {
			return fmt.Errorf("row %d has no submit time (column %s)", i+1, ds.Time.Submit)
		}
		if ds.Time.End == "" {
			continue
		}
		if end := r.Num[ds.Time.End][i]; math.IsNaN(end) || end < v {
			return fmt.Errorf("row %d: the end (column %s) is missing or before the submit (column %s)", i+1, ds.Time.End, ds.Time.Submit)
		}
	}
	r.sortBy(submit)
	return nil
}

// SortBy orders the rows by a number column, keeping the order of equals.
func (r *Rows) SortBy(column string) { r.sortBy(r.Num[column]) }

func (r *Rows) sortBy(key []float64) {
	perm := make([]int, r.N)
	for i := range perm {
		perm[i] = i
	}
	less := func(a, b int) int {
		switch {
		case key[a] < key[b]:
			return -1
		case key[a] > key[b]:
			return 1
		}
		return 0
	}
	if slices.IsSortedFunc(perm, less) {
		return
	}
	slices.SortStableFunc(perm, less)
	permuteColumns(r.Num, perm)
	permuteColumns(r.Cat, perm)
	permuteColumns(r.Vec, perm)
	if r.File != nil {
		r.File = pickRows(r.File, perm)
	}
}

func permuteColumns[T any](columns map[string][]T, perm []int) {
	for name, c := range columns {
		columns[name] = pickRows(c, perm)
	}
}

func pickRows[T any](c []T, rows []int) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = c[r]
	}
	return out
}

// derive adds the columns of history.
func (r *Rows) derive(ds *modelrepo.Dataset) error {
	for _, h := range ds.History {
		group, err := r.Groups(h.By)
		if err != nil {
			return err
		}
		value := r.Num[h.Of]
		for i, v := range value {
			if math.IsNaN(v) {
				return fmt.Errorf("row %d has no %s, of which the history is made", i+1, h.Of)
			}
		}
		stats := history.Of(history.New(r.Num[ds.Time.Submit], r.Num[ds.Time.End], value), group)
		for _, name := range h.Stats {
			col := make([]float64, r.N)
			for i, s := range stats {
				col[i] = historyStatistic(s, name)
			}
			r.Num[h.Column(name)] = col
		}
	}
	return nil
}

func historyStatistic(s history.Stats, name string) float64 {
	switch name {
	case "last":
		return s.Last
	case "median5":
		return s.Median5
	case "median":
		return s.Median
	case "max":
		return s.Max
	}
	if s.Count == 0 {
		return history.None
	}
	return float64(s.Count)
}

// Groups numbers the combinations of the given columns from 0, in the order in which they appear.
func (r *Rows) Groups(by []string) ([]int, error) {
	ids := map[string]int{}
	out := make([]int, r.N)
	var key strings.Builder
	for i := range out {
		key.Reset()
		for _, c := range by {
			if num, ok := r.Num[c]; ok {
				key.WriteString(strconv.FormatFloat(num[i], 'g', -1, 64))
			} else if cat, ok := r.Cat[c]; ok {
				key.WriteString(strconv.Quote(cat[i]))
			} else {
				return nil, fmt.Errorf("cannot group by %q: it is no number or category column", c)
			}
			key.WriteByte('|')
		}
		id, ok := ids[key.String()]
		if !ok {
			id = len(ids)
			ids[key.String()] = id
		}
		out[i] = id
	}
	return out, nil
}
