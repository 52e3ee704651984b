package dataset

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// parquetRow has the columns of tableSet.
type parquetRow struct {
	Start float64   `parquet:"start"`
	T1    *int64    `parquet:"t1,optional"`
	User  string    `parquet:"user,dict"`
	Emb   []float32 `parquet:"emb,list"`
	Run   *float32  `parquet:"run,optional"`
}

func parquetTable(t testing.TB, options ...parquet.WriterOption) []byte {
	t.Helper()
	ends, runs := []int64{1, 25, 40}, []float32{3, -1000}
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[parquetRow](&buf, options...)
	rows := []parquetRow{{0, &ends[0], "a", []float32{1, 2}, &runs[0]}, {20, &ends[1], "bob", []float32{3, 4.5}, nil}, {30, &ends[2], "ann", nil, &runs[1]}}
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func parquetSet() *modelrepo.Dataset {
	ds := tableSet()
	ds.Format, ds.Files = "parquet", []string{"data/*.parquet"}
	return ds
}

// A Parquet file and a CSV file of the same rows make the same columns.
func TestParquet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "data/a.parquet", string(parquetTable(t)))
	writeFile(t, dir, "data/a.csv", "start,t1,user,emb,run\n0,1,a,\"[1,2]\",3\n20,25,bob,\"[3, 4.5]\",\n30,40,ann,,-1e3\n")
	got, err := Load(context.Background(), Source{Repo: dir, Set: parquetSet(), Backend: "local"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := Load(context.Background(), Source{Repo: dir, Set: tableSet(), Backend: "local"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.IgnoreUnexported(Rows{}), cmpopts.IgnoreFields(Rows{}, "Version", "URI")); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
	if !strings.HasPrefix(got.Version, "sha256:") || got.Version == want.Version {
		t.Errorf("version %q, want the digest of the file", got.Version)
	}
}

// A file whose schema is no longer the data set's is refused by one sentence that names the file, the column and both
// types.
func TestParquetOfAnotherSchema(t *testing.T) {
	t.Parallel()
	type changed struct {
		Start float64   `parquet:"start"`
		T1    string    `parquet:"t1"`
		User  string    `parquet:"user"`
		Emb   []float32 `parquet:"emb,list"`
		Run   float64   `parquet:"run"`
	}
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[changed](&buf)
	if _, err := w.Write([]changed{{T1: "soon"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeFile(t, dir, "data/a.parquet", string(parquetTable(t)))
	writeFile(t, dir, "data/b.parquet", buf.String())
	for want, change := range map[string]func(*modelrepo.Dataset){
		`data set Jobs: data/b.parquet: column t1: it is BYTE_ARRAY (STRING) in the file, and the data set declares a number`: func(*modelrepo.Dataset) {},
		`data set Jobs: data/a.parquet: no column "begin"; the file has start, t1, user, emb, run`: func(d *modelrepo.Dataset) {
			d.Columns["t0"] = modelrepo.ColumnSpec{Type: modelrepo.Number, From: "begin", Available: "submit"}
		},
		`data set Jobs: data/a.parquet: column emb: row group 1: page at byte`: func(d *modelrepo.Dataset) {
			d.Columns["emb"] = modelrepo.ColumnSpec{Type: modelrepo.Vector, Length: 3, Available: "submit"}
		},
	} {
		ds := parquetSet()
		change(ds)
		if _, err := Load(context.Background(), Source{Repo: dir, Set: ds, Backend: "local"}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	buf.Reset()
	latin1 := parquet.NewGenericWriter[parquetRow](&buf)
	if _, err := latin1.Write([]parquetRow{{User: "ann"}, {User: "J\xf6rg"}}); err != nil {
		t.Fatal(err)
	}
	if err := latin1.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "data/b.parquet", buf.String())
	if _, err := Load(context.Background(), Source{Repo: dir, Set: parquetSet(), Backend: "local"}); err == nil || !strings.Contains(err.Error(), "data/b.parquet: column user: row group 1: page at byte 126: a text is no UTF-8") {
		t.Errorf("%v, want a refusal that names the column and the page", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data/a.parquet"), []byte("start,t1\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(context.Background(), Source{Repo: dir, Set: parquetSet(), Backend: "local"}); err == nil || !strings.Contains(err.Error(), "data/a.parquet: this is no Parquet file") {
		t.Errorf("%v, want a refusal that names the file", err)
	}
}

// Equal texts in a row are one text in memory, since only one is counted against the limit.
func TestParquetKeepsEqualTextsOnce(t *testing.T) {
	t.Parallel()
	type row struct {
		User string `parquet:"user,plain"` // each value is stored separately
	}
	const rows, size = 500, 16 << 10
	text := strings.Repeat("x", size)
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[row](&buf, parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(2*size))
	for range rows {
		if _, err := w.Write([]row{{text}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	set := &modelrepo.Dataset{Name: "Jobs", Format: "parquet", Columns: map[string]modelrepo.ColumnSpec{"user": {Type: modelrepo.Category}}}
	got := newRows(set)
	if err := readParquet(t.Context(), bytes.NewReader(buf.Bytes()), int64(buf.Len()), set, got); err != nil {
		t.Fatal(err)
	}
	kept := map[*byte]bool{}
	for _, v := range got.Cat["user"] {
		if len(v) != size {
			t.Fatalf("a text of %d bytes, want %d", len(v), size)
		}
		kept[unsafe.StringData(v)] = true
	}
	if got.N != rows || len(kept) != 1 {
		t.Errorf("%d rows keep %d texts, want %d rows and 1 text", got.N, len(kept), rows)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := readParquet(ctx, bytes.NewReader(buf.Bytes()), int64(buf.Len()), set, newRows(set)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v of a cancelled reading, want %v", err, context.Canceled)
	}
}
