package pg

import (
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A process that takes the port of a dead server gets no password, whichever kind of authentication it requests.
func TestPasswordIsForThisServerAlone(t *testing.T) {
	t.Parallel()
	own := &Server{port: startServer(t, Config{Dir: filepath.Join(t.TempDir(), "pg"), Throwaway: true, MaxConnections: 20}).port, password: "correct-horse"}
	if _, err := pgx.Connect(t.Context(), own.URL("")); err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Fatalf("our own server, another password: got %v, want password authentication failed", err)
	}
	for name, request := range map[string][]byte{
		"password in the clear": {0, 0, 0, 3},
		"MD5 of the password":   {0, 0, 0, 5, 1, 2, 3, 4},
		"no password":           {0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			got := make(chan string, 1)
			go func() { got <- askForPassword(l, request) }()
			stranger := &Server{port: l.Addr().(*net.TCPAddr).Port, password: "correct-horse"}
			if _, err := pgx.Connect(t.Context(), stranger.URL("")); err == nil || !strings.Contains(err.Error(), "require_auth") {
				t.Errorf("got %v, want an error that names require_auth", err)
			}
			if text := <-got; text != "" {
				t.Errorf("the stranger got %q, want nothing", text)
			}
		})
	}
}

// askForPassword answers one start of a session with a request for authentication, and returns the client's reply.
func askForPassword(l net.Listener, request []byte) string {
	conn, err := l.Accept()
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err.Error()
	}
	if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))-4); err != nil {
		return err.Error()
	}
	message := append([]byte{'R', 0, 0, 0, byte(4 + len(request))}, request...)
	if _, err := conn.Write(message); err != nil {
		return err.Error()
	}
	answer, _ := io.ReadAll(conn) // ends with the connection, or is reset
	return string(answer)
}
