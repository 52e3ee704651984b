// Package swf reads job logs in the Standard Workload Format, version 2
// (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html): one job a line, 18 whitespace-separated numbers,
// -1 for what is not known, and a header of "; Key: value" comments.
package swf

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
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

// Bounds of a log: the largest public one holds about 4.4 million jobs in 400 MB.
const (
	MaxBytes = 2 << 30
	MaxJobs  = 10_000_000
	maxLine  = 64 << 10
)

// Record is one job; missing values are -1. Times are in seconds, Submit since the log's start.
type Record [fields]float64

// Log is what a file holds.
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

// Kept reports whether a job ran to an end that says something: run time and processors known, status 1
// (completed) or unknown. Failed and cancelled jobs end early for reasons that are not in the log.
func (r *Record) Kept() bool {
	return r[Run] >= 0 && r.Processors() > 0 && (r[Status] == -1 || r[Status] == 1)
}

// Processors is what the job asked for, or else what it got.
func (r *Record) Processors() float64 {
	if r[ReqProcs] > 0 {
		return r[ReqProcs]
	}
	return r[Procs]
}

// End is when the job ended, in seconds since the log's start.
func (r *Record) End() float64 { return r[Submit] + max(r[Wait], 0) + r[Run] }

// Read reads a log, compressed by gzip or not. It reads at most MaxBytes, and keeps the jobs that are Kept.
func Read(src io.Reader) (*Log, error) {
	r := bufio.NewReader(src)
	if magic, _ := r.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		defer z.Close()
		src = z
	} else {
		src = r
	}
	limited := &io.LimitedReader{R: src, N: MaxBytes + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	log := &Log{Header: map[string]string{}}
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSpace(lines.Text())
		if comment, ok := strings.CutPrefix(line, ";"); ok {
			if k, v, ok := strings.Cut(comment, ":"); ok {
				k, v = strings.TrimSpace(k), strings.TrimSpace(v)
				if _, again := log.Header[k]; !again && k != "" {
					log.Header[k] = v
				}
			}
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
		if len(log.Records) == MaxJobs {
			return nil, fmt.Errorf("line %d: the log holds more than %d jobs", n, MaxJobs)
		}
		log.Records = append(log.Records, rec)
	}
	if limited.N <= 0 {
		return nil, fmt.Errorf("the log is larger than %d MiB unpacked", MaxBytes>>20)
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return nil, fmt.Errorf("line %d: longer than %d bytes; is this a job log?", n+1, maxLine)
		}
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	var err error
	log.Start, err = parseStartTime(log.Header)
	return log, err
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
			return rec, fmt.Errorf("field %d is %q, want a number", i+1, field)
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
		// "Local" would be the zone of whatever machine reads the log.
		if z, err := time.LoadLocation(name); err == nil && name != "Local" {
			zone = z
		} else if h["TimeZone"] == "" {
			return time.Time{}, fmt.Errorf("header TimeZoneString %q is no zone of the tz database", name)
		}
	}
	if offset := h["TimeZone"]; offset != "" && zone == time.UTC {
		sec, err := strconv.Atoi(offset)
		if err != nil || sec < -86400 || sec > 86400 {
			return time.Time{}, fmt.Errorf("header TimeZone is %q, want seconds east of UTC", offset)
		}
		zone = time.FixedZone(offset+" s", sec)
	}
	unix := int64(0)
	if s := h["UnixStartTime"]; s != "" {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 || v > 1<<40 {
			return time.Time{}, fmt.Errorf("header UnixStartTime is %q, want seconds since 1970", s)
		}
		unix = v
	}
	return time.Unix(unix, 0).In(zone), nil
}
