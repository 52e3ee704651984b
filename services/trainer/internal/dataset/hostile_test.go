package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// readLimit is the time limit of one hostile file.
const readLimit = time.Minute

// bombs cost a reader more than they weigh, or look like another format.
func bombs(t *testing.T) []hostiletest.File {
	const header, job = "start,t1,user,emb,run\n", "1 0 0 60 4 -1 -1 -1 -1 -1 1 7 1 3 -1 -1 -1 -1\n"
	var out []hostiletest.File
	add := func(kind, name string, data []byte) {
		out = append(out, hostiletest.File{Kind: kind, Name: name, Data: data})
	}
	pack := func(kind, name, head, body string, times int) {
		if hostiletest.Race { // compressing takes minutes
			times /= 64
		}
		add(kind, name, hostiletest.Gzip(t, hostiletest.File{Data: []byte(head), Body: body, Times: times}))
	}
	large := func(kind, name, head, body string, times int) {
		out = append(out, hostiletest.File{Kind: kind, Name: name, Data: []byte(head), Body: body, Times: times})
	}
	pack("csv", "a packed cell of 128 MiB", header+"0,1,\"", "a", 1<<27)
	pack("csv", "a packed header of 128 MiB", "start", ",x", 1<<26)
	pack("csv", "a packed vector of 128 MiB", header+"0,1,a,\"[1", ",1", 1<<26)
	pack("csv", "packed brackets", header+"0,1,a,\"", "[", 1<<20)
	pack("csv", "many packed rows", header, "1,2,a,,\n", 1<<24)
	pack("csv", "many packed lines", header, "\n", 1<<27)
	large("csv", "many rows", header, "1,2,abcdefgh,\"[1,2]\",3\n", 3_500_000)
	large("csv", "many empty cells", header, "1,2,,,\n", 3_500_000)
	large("csv", "most rows", header, "1,2,a,,\n", 2_200_000)
	large("csv", "a cell of 128 MiB", header+"0,1,\"", "abc,\n", 1<<25)
	pack("swf", "a packed line of 256 MiB", "", "1 ", 1<<27)
	pack("swf", "many packed jobs", "", job, 4_000_000)
	pack("swf", "many packed keys", "", "; a: b\n", 1<<24)
	large("swf", "many jobs", "", job, 4_000_000)
	large("swf", "most jobs", "", job, 1_100_000)
	var keys strings.Builder
	for i := range 500_000 {
		fmt.Fprintf(&keys, "; key%d: %[1]d\n", i)
	}
	add("swf", "many different keys", []byte(keys.String()))
	// Packed pages and footers that declare more than they hold.
	for i, page := range []string{"\x15\x00\x15\xfe\xff\xff\xff\x0f", strings.Repeat("\x28\xb5\x2f\xfd", 5000), "\xff\x06\x00\x00sNaPpY" + strings.Repeat("\xfe\x01\x00", 50_000), strings.Repeat("\x00", 1<<20)} {
		add("parquet", fmt.Sprint("page ", i), []byte("PAR1"+page+"\xff\xff\xff\x7fPAR1"))
		add("parquet", fmt.Sprint("footer ", i), []byte("PAR1"+page+string(binary.LittleEndian.AppendUint32(nil, uint32(len(page))))+"PAR1"))
	}
	tall := func(name string, rows int, rowAt func(i int) parquetRow) {
		if hostiletest.Race {
			rows /= 64
		}
		var buf bytes.Buffer
		w := parquet.NewGenericWriter[parquetRow](&buf, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(100_000))
		for i := range rows {
			if _, err := w.Write([]parquetRow{rowAt(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		add("parquet", name, buf.Bytes())
	}
	end := int64(2)
	tall("many equal rows", 1_500_000, func(int) parquetRow { return parquetRow{Start: 1, T1: &end, User: "a", Emb: []float32{1, 2}} })
	long := strings.Repeat("x", 4<<20)
	tall("a long text, often", 64, func(i int) parquetRow { return parquetRow{Start: 1, T1: &end, User: long[i:]} })
	return out
}

// Hostile data files end in a refusal or in rows, in time and within the memory of one process, and afterwards the
// sample log still loads.
func TestHostileDataFiles(t *testing.T) {
	jobLog, err := os.ReadFile(samples + "/data/nasa-ipsc-1993.swf.gz")
	if err != nil {
		t.Fatal(err)
	}
	table := []byte("start,t1,user,emb,run\n0,1,a,\"[1,2]\",3\n20,25,bob,\"[3, 4.5]\",\n30,40,ann,,-1e3\n")
	text := []byte("; UnixStartTime: 749458803\n; TimeZoneString: US/Pacific\n" + strings.Repeat("1 0 0 60 4 -1 -1 -1 -1 -1 1 7 1 3 -1 -1 -1 -1\n", 50))
	columns, packed := parquetTable(t, parquet.Compression(&parquet.Uncompressed)), parquetTable(t, parquet.Compression(&parquet.Snappy))
	files := bombs(t)
	files = append(files, hostiletest.Mutate("csv", 150, 1, table)...)
	files = append(files, hostiletest.Mutate("swf", 150, 2, text, jobLog)...)
	files = append(files, hostiletest.Mutate("parquet", 100, 3, columns, packed)...)
	log := *sampleRepo(t).Datasets["IpscJobs"]
	log.Files = []string{"data/hostile"}
	tab := *tableSet()
	tab.Files = log.Files
	columnar := tab
	columnar.Format = "parquet"
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if hostiletest.Race { // hundreds of megabytes take minutes
		files = slices.DeleteFunc(files, func(f hostiletest.File) bool { return f.Times > 0 })
	}
	hostiletest.Feed(t, files, readLimit, func(f hostiletest.File) error {
		file, err := os.Create(filepath.Join(dir, "data", "hostile"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Write(file), file.Close()); err != nil {
			t.Fatal(err)
		}
		set := map[string]*modelrepo.Dataset{"csv": &tab, "swf": &log, "parquet": &columnar}[f.Kind]
		_, err = Load(context.Background(), Source{Repo: dir, Set: set, Backend: "local"})
		return err
	})
	rows, err := Load(context.Background(), Source{Repo: samples, Set: sampleRepo(t).Datasets["IpscJobs"], Backend: "local"})
	if err != nil || rows.N != 18239 {
		t.Errorf("the sample log: %v; want 18,239 rows", err)
	}
}

// The error at the memory limit explains how to fix it.
func TestTooManyValuesSayWhatToDo(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Rows{
		"files":   {held: maxHeld + 1},
		"history": {held: 1, N: 1 << 20, derived: 1 << 10},
	} {
		err := r.checkHeld()
		if err == nil || !strings.Contains(err.Error(), "more than 384 MiB") || !strings.Contains(err.Error(), "declare only the columns and the history that the models use, list fewer files") {
			t.Errorf("%s: got %v, want the limit and what to do", name, err)
		}
	}
	if err := (&Rows{held: maxHeld}).checkHeld(); err != nil {
		t.Errorf("at the limit: got %v, want no error", err)
	}
}
