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
	log, err := swf.Read(src)
	if err != nil {
		return err
	}
	into.Dropped += log.Dropped
	appendLog(log, ds, into)
	return nil
}

func appendLog(log *swf.Log, ds *modelrepo.Dataset, into *Rows) {
	if into.start.IsZero() {
		into.start = log.Start
	}
	later := log.Start.Sub(into.start).Seconds()
	for name, c := range ds.Columns {
		source := c.From
		if source == "" {
			source = name
		}
		get := recordField(source, log.Start, later)
		for i := range log.Records {
			v := get(&log.Records[i])
			if c.Type == modelrepo.Category {
				into.Cat[name] = append(into.Cat[name], strconv.FormatFloat(v, 'f', -1, 64))
			} else {
				into.Num[name] = append(into.Num[name], v)
			}
		}
	}
	into.N += len(log.Records)
}

// recordField says how a column is read from a record of a log that starts so many seconds later than the first one. -1 stays: in a log, "not known" is a value like others.
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
