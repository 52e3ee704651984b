// Package swf reads job logs in the Standard Workload Format, version 2
// (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html): one job a line, 18 whitespace-separated numbers, -1 for
// unknown values, and a header of "; Key: value" comments.
package swf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/trainer/internal/unpack"
)

// Fields of a record, in the order of the format.
const (
	Job = iota
	Submit
	Wait
	Run
	Procs
	CPUAvg
	Mem
	ReqProcs
	ReqTime
	ReqMem
	Status
	User
	Group
	App
	Queue
	Partition
	Prev
	Think
	fields
)

// Limits of a log: the largest public one holds about 4.4 million jobs in 400 MB. A data set has its own limit, which
// many columns reach earlier.
const (
	MaxBytes = 2 << 30
	MaxJobs  = 10_000_000
	maxLine  = 64 << 10
	maxKeys  = 1_000 // of the header
)

// Record is one job; missing values are -1. Times are in seconds, Submit since the log's start.
type Record [fields]float64

// Log is the content of a file.
type Log struct {
	// Header holds the first value of each key.
	Header map[string]string
	// Start is the instant at which Submit is 0, in the log's zone; UTC if the header names none.
	Start time.Time
	// Records that can be learned from, in the order of the file.
	Records []Record
	// Dropped counts the others: no run time, no processors, or a status other than done or unknown.
	Dropped int
}

// Kept reports whether a job ran to a meaningful end: run time and processors known, status 1 (completed) or unknown.
// Failed and cancelled jobs end early for reasons that are not in the log.
func (r *Record) Kept() bool {
	return r[Run] >= 0 && r.Processors() > 0 && (r[Status] == -1 || r[Status] == 1)
}

// Processors returns the processors requested, or else allocated.
func (r *Record) Processors() float64 {
	if r[ReqProcs] > 0 {
		return r[ReqProcs]
	}
	return r[Procs]
}

// End is when the job ended, in seconds since the log's start.
func (r *Record) End() float64 { return r[Submit] + max(r[Wait], 0) + r[Run] }

// Each reads a log, compressed by gzip or not, of at most MaxBytes, and hands over the jobs that are Kept one by one, so
// that a caller holds no more of them than it needs. By then the log has its Start; it has no Records.
func Each(src io.Reader, each func(*Log, *Record) error) (*Log, error) {
	text, err := unpack.Reader(src, MaxBytes)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(text)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	log := &Log{Header: map[string]string{}}
	n, kept := 0, 0
	for lines.Scan() {
		n++
		line := lines.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if strings.ContainsRune(line, 0) { // comments may be in any encoding with ASCII in it: they are not read
			return nil, fmt.Errorf("line %d: it holds a NUL byte, which no log has; save a file in UTF-16 as UTF-8", n)
		}
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, ";"); ok {
			log.addHeader(comment)
			continue
		}
		if line == "" {
			continue
		}
		rec, err := parseRecord(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if !rec.Kept() {
			log.Dropped++
			continue
		}
		if kept++; kept > MaxJobs {
			return nil, fmt.Errorf("line %d: the log holds more than %d jobs", n, MaxJobs)
		}
		if kept == 1 {
			if log.Start, err = parseStartTime(log.Header); err != nil {
				return nil, err
			}
		}
		if err := each(log, &rec); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return nil, fmt.Errorf("line %d: longer than %d bytes; is this a job log?", n+1, maxLine)
		}
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	start, err := parseStartTime(log.Header)
	if err != nil {
		return nil, err
	}
	if kept > 0 && (!start.Equal(log.Start) || start.Location().String() != log.Start.Location().String()) {
		return nil, errors.New("the header names the start or its zone after the first job")
	}
	log.Start = start
	return log, nil
}

// addHeader keeps the first value of each key. Real headers have some thirty; those after maxKeys are not needed.
func (l *Log) addHeader(comment string) {
	k, v, ok := strings.Cut(comment, ":")
	k, v = strings.TrimSpace(k), strings.TrimSpace(v)
	if _, again := l.Header[k]; ok && !again && k != "" && len(l.Header) < maxKeys {
		l.Header[strings.Clone(k)] = strings.Clone(v)
	}
}

func parseRecord(line string) (Record, error) {
	var rec Record
	i := 0
	for field := range strings.FieldsSeq(line) {
		if i == int(fields) {
			return rec, fmt.Errorf("more than %d fields", fields)
		}
		v, err := strconv.ParseFloat(field, 64)
		if err != nil || math.IsNaN(v) || math.Abs(v) > 1e15 {
			return rec, fmt.Errorf("field %d is %.40q, want a number", i+1, field)
		}
		rec[i] = v
		i++
	}
	if i < int(fields) {
		return rec, fmt.Errorf("%d fields, want %d", i, fields)
	}
	if rec[Submit] < 0 {
		return rec, errors.New("field 2: the submit time is missing or before the log's start")
	}
	return rec, nil
}

// parseStartTime reads UnixStartTime and the zone: TimeZoneString (tz database), else TimeZone (seconds east of UTC).
func parseStartTime(h map[string]string) (time.Time, error) {
	zone := time.UTC
	if name := h["TimeZoneString"]; name != "" {
		// "Local" would be the zone of the machine that reads the log.
		if z, err := time.LoadLocation(name); err == nil && name != "Local" {
			zone = z
		} else if h["TimeZone"] == "" {
			return time.Time{}, fmt.Errorf("header TimeZoneString %.80q is no zone of the tz database", name)
		}
	}
	if offset := h["TimeZone"]; offset != "" && zone == time.UTC {
		sec, err := strconv.Atoi(offset)
		if err != nil || sec < -86400 || sec > 86400 {
			return time.Time{}, fmt.Errorf("header TimeZone is %.80q, want seconds east of UTC", offset)
		}
		zone = time.FixedZone(offset+" s", sec)
	}
	unix := int64(0)
	if s := h["UnixStartTime"]; s != "" {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 || v > 1<<40 {
			return time.Time{}, fmt.Errorf("header UnixStartTime is %.80q, want seconds since 1970", s)
		}
		unix = v
	}
	return time.Unix(unix, 0).In(zone), nil
}
