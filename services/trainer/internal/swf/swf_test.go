package swf

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strings"
	"testing"
)

const one = "1 0 5 60 4 -1 -1 8 -1 -1 1 7 1 3 -1 -1 -1 -1\n"

// readAll reads a log and keeps its jobs.
func readAll(src io.Reader) (*Log, error) {
	var records []Record
	log, err := Each(src, func(_ *Log, rec *Record) error {
		records = append(records, *rec)
		return nil
	})
	if err != nil {
		return nil, err
	}
	log.Records = records
	return log, nil
}

func TestRealLog(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../../../../deploy/modelrepo/data/nasa-ipsc-1993.swf.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, err := readAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Records) != 18239 || log.Dropped != 0 {
		t.Errorf("%d jobs, %d dropped; the header promises 18239; want len(log.Records) == 18239 && log.Dropped == 0", len(log.Records), log.Dropped)
	}
	// The header also has the start as text.
	if got := log.Start.Format("Mon Jan 02 15:04:05 MST 2006"); got != log.Header["StartTime"] {
		t.Errorf("start %s, header says %s; want got == %v", got, log.Header["StartTime"], log.Header["StartTime"])
	}
	if r := log.Records[0]; r[Run] != 1451 || r.Processors() != 128 || r[App] != -1 {
		t.Errorf("first job %v; want r[Run] == 1451 && r.Processors() == 128 && r[App] == -1", r)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in      string
		kept    int
		dropped int
		err     string
	}{
		"empty":           {"", 0, 0, ""},
		"header only":     {"; UnixStartTime: 5\n;\n; note without value\n", 0, 0, ""},
		"one":             {one, 1, 0, ""},
		"failed":          {strings.Replace(one, "-1 -1 1 7", "-1 -1 0 7", 1), 0, 1, ""},
		"status unknown":  {strings.Replace(one, "-1 -1 1 7", "-1 -1 -1 7", 1), 1, 0, ""},
		"no run time":     {strings.Replace(one, "60", "-1", 1), 0, 1, ""},
		"no procs at all": {"1 0 5 60 -1 -1 -1 -1 -1 -1 1 7 1 3 -1 -1 -1 -1", 0, 1, ""},
		"short":           {"; x\n1 2 3\n", 0, 0, "line 2: 3 fields, want 18"},
		"long":            {strings.TrimSpace(one) + " 9\n", 0, 0, "line 1: more than 18 fields"},
		"text":            {strings.Replace(one, "60", "abc", 1), 0, 0, `line 1: field 4 is "abc", want a number`},
		"NaN":             {strings.Replace(one, "60", "NaN", 1), 0, 0, "want a number"},
		"before start":    {strings.Replace(one, "1 0", "1 -3", 1), 0, 0, "submit time"},
		"endless line":    {strings.Repeat("1", maxLine+1), 0, 0, "longer than"},
		"zone":            {"; TimeZone: east\n", 0, 0, "header TimeZone"},
		"zone name":       {"; TimeZoneString: Local\n", 0, 0, "TimeZoneString"},
		"start":           {"; UnixStartTime: soon\n", 0, 0, "UnixStartTime"},
		"mark":            {"\ufeff; UnixStartTime: 5\r\n" + one, 1, 0, ""},
		"mark and job":    {"\ufeff" + one, 1, 0, ""},
		"Latin-1 comment": {"; Contact: J\xf6rg\n" + one, 1, 0, ""},
		"UTF-16":          {"\xff\xfe;\x00 \x00\n\x00", 0, 0, "line 1: it holds a NUL byte"},
		"broken gzip":     {"\x1f\x8bxx", 0, 0, "unpack"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, err := readAll(strings.NewReader(c.in))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(log.Records) != c.kept || log.Dropped != c.dropped {
				t.Errorf("%d kept, %d dropped; want %d, %d", len(log.Records), log.Dropped, c.kept, c.dropped)
			}
		})
	}
}

func TestRequestedProcessorsGoFirst(t *testing.T) {
	t.Parallel()
	log, err := readAll(strings.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	if r := log.Records[0]; r.Processors() != 8 || r.End() != 65 {
		t.Errorf("processors %v, end %v; want 8, 65", r.Processors(), r.End())
	}
}

// For any bytes, Read returns; packed and plain files agree, and every job kept can be learned from.
func FuzzRead(f *testing.F) {
	f.Add([]byte(one))
	f.Add([]byte("; UnixStartTime: 749458803\n; TimeZone: -28800\n; TimeZoneString: US/Pacific\n" + one))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, in []byte) {
		log, err := readAll(bytes.NewReader(in))
		if err == nil {
			for _, r := range log.Records {
				if !r.Kept() || r.End() < r[Submit] {
					t.Fatalf("kept %v; want r.Kept() && r.End() >= r[Submit]", r)
				}
			}
		}
		if bytes.HasPrefix(in, []byte("\x1f\x8b")) {
			return
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(in)
		z.Close()
		packed, perr := readAll(&b)
		if (err == nil) != (perr == nil) {
			t.Fatalf("plain: %v, packed: %v; want (err == nil) == (perr == nil)", err, perr)
		}
		if err == nil && (len(packed.Records) != len(log.Records) || packed.Dropped != log.Dropped) {
			t.Fatal("packed and plain differ")
		}
	})
}
