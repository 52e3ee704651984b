package trackerd

import "time"

// MaxArtifact limits one artifact in bytes; default 8 GiB.
func MaxArtifact(n int64) Option { return func(s *Server) { s.maxArtifact = n } }

// AllowHosts names hosts beside localhost and addresses by which the server may
// be called; a web page must not reach it through a name of its own.
func AllowHosts(names ...string) Option { return func(s *Server) { s.hosts = names } }

// Clock replaces the clock.
func Clock(now func() time.Time) Option { return func(s *Server) { s.clock = now } }
