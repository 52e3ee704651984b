package postgres

import (
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsUnique reports whether err is a violation of this unique constraint or index;
// an empty constraint matches any.
func IsUnique(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && (constraint == "" || pg.ConstraintName == constraint)
}

// Unavailable reports whether err means that the database cannot be reached or
// takes no connections now, so that the same call may succeed later. A commit
// that fails so may yet have happened.
func Unavailable(err error) bool {
	if err == nil {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		// Appendix A of the Postgres manual: class 08 connection exception,
		// 53300 too many connections, 57P01-57P03 shutting down or starting.
		return strings.HasPrefix(pg.Code, "08") || pg.Code == "53300" ||
			pg.Code == "57P01" || pg.Code == "57P02" || pg.Code == "57P03"
	}
	var connect *pgconn.ConnectError
	var op *net.OpError
	return errors.As(err, &connect) || errors.As(err, &op) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		pgconn.SafeToRetry(err)
}
