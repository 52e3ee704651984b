package logtext

import "time"

// TimeOf returns the time in a line, or zero. Times without a zone are taken for UTC.
func TimeOf(line string) time.Time { return timeOf(line) }
