package dataset

import (
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/swf"
)

func readSWF(src io.Reader, ds *modelrepo.Dataset, into *Rows) error {
	var add func(*swf.Record) error
	log, err := swf.Each(src, func(log *swf.Log, rec *swf.Record) error {
		if add == nil {
			add = into.recordAppender(log.Start, ds)
		}
		return add(rec)
	})
	if err != nil {
		return err
	}
	into.Dropped += log.Dropped
	return nil
}

func appendLog(log *swf.Log, ds *modelrepo.Dataset, into *Rows) error {
	add := into.recordAppender(log.Start, ds)
	for i := range log.Records {
		if err := add(&log.Records[i]); err != nil {
			return err
		}
	}
	return nil
}

// recordAppender returns a function that adds a record of the log that starts then.
func (r *Rows) recordAppender(start time.Time, ds *modelrepo.Dataset) func(*swf.Record) error {
	if r.start.IsZero() {
		r.start = start
	}
	later := start.Sub(r.start).Seconds()
	type column struct {
		name     string
		category bool
		get      func(*swf.Record) float64
	}
	var columns []column
	for name, c := range ds.Columns {
		source := c.From
		if source == "" {
			source = name
		}
		columns = append(columns, column{name, c.Type == modelrepo.Category, recordField(source, start, later)})
	}
	return func(rec *swf.Record) error {
		for _, c := range columns {
			v := c.get(rec)
			if !c.category {
				r.Num[c.name] = append(r.Num[c.name], v)
				r.held += numberBytes
				continue
			}
			text := strconv.FormatFloat(v, 'f', -1, 64)
			r.Cat[c.name] = append(r.Cat[c.name], text)
			r.held += textBytes + int64(len(text))
		}
		r.N++
		return r.checkHeld()
	}
}

// recordField returns the reader of a column from the records of a log that starts later seconds after the first one.
// -1 stays: in a log, "not known" is an ordinary value.
func recordField(source string, start time.Time, later float64) func(*swf.Record) float64 {
	at := func(r *swf.Record) time.Time {
		return start.Add(time.Duration(r[swf.Submit] * float64(time.Second)))
	}
	switch source {
	case "hour":
		return func(r *swf.Record) float64 { return float64(at(r).Hour()) }
	case "weekday":
		return func(r *swf.Record) float64 { return float64((at(r).Weekday() + 6) % 7) }
	case "submit":
		return func(r *swf.Record) float64 { return r[swf.Submit] + later }
	case "end":
		return func(r *swf.Record) float64 { return r.End() + later }
	case "procs":
		return (*swf.Record).Processors
	}
	i := slices.Index(modelrepo.SWFColumns, source)
	return func(r *swf.Record) float64 { return r[i] }
}
