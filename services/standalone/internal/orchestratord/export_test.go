package orchestratord

import "time"

// Clock replaces the clock.
func Clock(now func() time.Time) Option { return func(s *Server) { s.clock = now } }
