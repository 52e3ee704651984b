package trackerd

import "time"

// MaxArtifact limits one artifact in bytes; default 8 GiB.
func MaxArtifact(n int64) Option { return func(s *Server) { s.maxArtifact = n } }

// AllowHosts adds names under which the server may be called, besides localhost and addresses; a web page must not
// reach it through a name that it controls.
func AllowHosts(names ...string) Option { return func(s *Server) { s.hosts = names } }

// Clock replaces the clock.
func Clock(now func() time.Time) Option { return func(s *Server) { s.clock = now } }
