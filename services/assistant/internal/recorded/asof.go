package recorded

import (
	"time"
)

// past are the fields whose time lies in the past. Others may lie ahead: the end of a certificate, of a lease or of a
// grace period.
var past = map[string]bool{
	"creationTimestamp": true, "firstTimestamp": true, "lastTimestamp": true, "eventTime": true, "lastObservedTime": true,
	"lastTransitionTime": true, "lastUpdateTime": true, "lastProbeTime": true, "lastHeartbeatTime": true, "startTime": true,
	"startedAt": true, "finishedAt": true, "completionTime": true, "lastScheduleTime": true, "lastSuccessfulTime": true,
	"lastScaleTime": true, "renewTime": true, "acquireTime": true, "time": true,
}

// newest returns the newest time of the objects and logs. A time in the reader's future cannot be the time of a
// recording.
func (l *loader) newest() time.Time {
	var newest time.Time
	limit := time.Now().Add(24 * time.Hour)
	see := func(at time.Time) {
		if at.After(newest) && at.Before(limit) {
			newest = at
		}
	}
	for _, k := range l.resources {
		for _, o := range k.objects {
			for _, part := range []string{"metadata", "status", "spec"} {
				if part == "spec" && k.Kind != "Lease" {
					continue
				}
				seeTimes(o.Object[part], see)
			}
			if k.Kind == "Event" {
				seeTimes(o.Object, see)
			}
		}
	}
	for _, log := range l.logs {
		for _, line := range log.lines {
			see(line.at)
		}
	}
	return newest.UTC()
}

func seeTimes(value any, see func(time.Time)) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if text, ok := inner.(string); ok && past[key] {
				if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
					see(at)
				}
				continue
			}
			seeTimes(inner, see)
		}
	case []any:
		for _, inner := range v {
			seeTimes(inner, see)
		}
	}
}
