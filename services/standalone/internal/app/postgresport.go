package app

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"

	"github.com/mlp-platform/platform/libs/service/listener"
	"github.com/mlp-platform/platform/services/standalone/internal/stack"
)

// postgresPortConns limits the sessions over TCP. A connection occupies a session before it has sent its password, so
// the rest of Postgres' 80 are reserved for the platform, which uses the socket.
const postgresPortConns = 20

// servePostgres passes connections on to Postgres' socket until ctx ends.
func servePostgres(ctx context.Context, l net.Listener, socket string) error {
	return stack.Forward(ctx, listener.New(l, postgresPortConns), func(ctx context.Context, caller net.Conn) (net.Conn, error) {
		var dialer net.Dialer
		server, err := dialer.DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, err
		}
		return &session{Conn: server, port: listener.Of(caller)}, nil
	})
}

// session keeps the caller's place once Postgres has authenticated it.
type session struct {
	net.Conn
	port  *listener.Conn
	begin []byte // Postgres' answer so far, until known
	known bool
}

// Read implements net.Conn.
func (s *session) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if !s.known {
		s.begin = append(s.begin, p[:n]...)
		var in bool
		if in, s.known = signedIn(s.begin); in {
			s.port.Keep("")
		}
		if s.known {
			s.begin = nil
		}
	}
	return n, err
}

// CloseWrite ends the sending half.
func (s *session) CloseWrite() error { return s.Conn.(*net.UnixConn).CloseWrite() }

// signedIn reads the start of Postgres' answer: one letter for each offer of encryption that it refuses, then
// authentication messages, of which number 0 means success. known is false while more has to come.
func signedIn(text []byte) (in, known bool) {
	const (
		authentication = 'R'
		header         = 5 // a byte for the kind, four for the length
	)
	for text = bytes.TrimLeft(text, "N"); len(text) >= header+4; {
		length := binary.BigEndian.Uint32(text[1:])
		switch {
		case text[0] != authentication || length < 8 || length > 1<<10:
			return false, true // an error: it ends
		case binary.BigEndian.Uint32(text[header:]) == 0:
			return true, true
		case len(text) < 1+int(length):
			return false, false
		}
		text = text[1+length:]
	}
	return false, len(text) > 0 && text[0] != authentication
}
