package logtext

import "time"

// TimeOf is the time that a line carries, or zero. Times without a zone are taken for UTC.
func TimeOf(line string) time.Time { return timeOf(line) }
