package postgres

import "time"

// Options that only tests set.

// AppName is shown in pg_stat_activity; default the schema.
func AppName(name string) Option { return func(o *options) { o.appName = name } }

// StatementTimeout ends a statement on the server; default 30 s, 0 means never. A server
// that is silent for 5 s longer counts as gone: the connection ends.
func StatementTimeout(d time.Duration) Option { return func(o *options) { o.statementTimeout = d } }

// StartupWait is how long Open waits for a server that does not answer yet; default 10 s.
func StartupWait(d time.Duration) Option { return func(o *options) { o.wait = d } }
