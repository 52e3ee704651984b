package pg

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func startServer(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopServer(t, s) })
	return s
}

func stopServer(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func queryValue[T any](t *testing.T, s *Server, sql string) (v T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDataAndAddressSurviveARestart(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: filepath.Join(t.TempDir(), "pg")}
	s := startServer(t, cfg)
	first := s.URL("")
	queryValue[int](t, s, "with t as (select 1) select 1")
	conn, err := pgx.Connect(t.Context(), s.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "create table fruit as select 'quince' as name"); err != nil {
		t.Fatal(err)
	}
	stopServer(t, s) // with a session open
	if err, ok := <-s.Wait(); ok {
		t.Errorf("a stopped server has died: %v; want !ok", err)
	}
	stopServer(t, s)

	begin := time.Now()
	s = startServer(t, cfg)
	if d := time.Since(begin); d > 12*time.Second { // 40 ms on an idle machine
		t.Errorf("the second start took %v; want d <= 12 * time.Second", d)
	}
	if s.URL("") != first {
		t.Errorf(`now at %s, was at %s; want s.URL("") == %v`, s.URL(""), first, first)
	}
	if got := queryValue[string](t, s, "select name from fruit"); got != "quince" {
		t.Errorf(`read %q; want "quince"`, got)
	}
	for setting, want := range map[string]string{
		"fsync": "on", "shared_buffers": "32MB", "jit": "off", "max_connections": "80", "listen_addresses": "",
		"unix_socket_directories": ".", "unix_socket_permissions": "0700", "server_encoding": "UTF8", "TimeZone": "UTC",
	} {
		if got := queryValue[string](t, s, "select current_setting('"+setting+"')"); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
}

// Only the server's user and root can reach the socket, and no port is open; nor is the path of the data directory ever
// too long.
func TestServerListensOnItsSocketAlone(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"short": "pg", "long": filepath.Join(strings.Repeat("long", 20), strings.Repeat("longer", 20))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Dir: filepath.Join(t.TempDir(), dir)}
			s := startServer(t, cfg)
			if got := queryValue[string](t, s, "select current_setting('listen_addresses')"); got != "" {
				t.Errorf("it listens on %q, want no address", got)
			}
			info, err := os.Stat(s.Socket())
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Type() != os.ModeSocket || info.Mode().Perm() != 0o700 {
				t.Errorf("the socket is %v, want a socket of mode 0700", info.Mode())
			}
			above, err := os.Stat(filepath.Dir(filepath.Dir(s.Socket())))
			if err != nil || above.Mode().Perm() != 0o700 {
				t.Errorf("above the socket: %v, %v; want mode 0700", above.Mode(), err)
			}
			if link := s.socket.link; (link != "") != (name == "long") {
				t.Errorf("clients go by the link %q; want one for a long path alone", link)
			}
			// Killed, it leaves its socket and the lock of that behind.
			if err := syscall.Kill(s.proc.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-s.Wait()
			stopServer(t, s)
			if _, err := os.Lstat(s.socket.link); s.socket.link != "" && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the link's directory after the end: %v, want none", err)
			}
			queryValue[int](t, startServer(t, cfg), "select 1")
		})
	}
}

func TestTheDirectoryIsPrivate(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: filepath.Join(t.TempDir(), "pg")}
	s := startServer(t, cfg)
	for name, want := range map[string]os.FileMode{"": 0o700, "data": 0o700, "password": 0o600} {
		info, err := os.Stat(filepath.Join(cfg.Dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v; want info.Mode().Perm() == want", name, info.Mode(), err)
		}
	}
	u := strings.Replace(s.URL(""), s.password, "wrong", 1)
	if conn, err := pgx.Connect(t.Context(), u); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a wrong password passed")
	}
	_, err := Start(t.Context(), cfg)
	expectError(t, err, "in use by another process", cfg.Dir)
}

func TestAKilledServerIsTold(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: filepath.Join(t.TempDir(), "pg")}
	s := startServer(t, cfg)
	if err := syscall.Kill(s.proc.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	expectError(t, <-s.Wait(), "exited unexpectedly", "killed")
	stopServer(t, s)
	queryValue[int](t, startServer(t, cfg), "select 1") // its shared memory may take a moment to go
}

// TestParent is a helper: TestServerDiesWithItsParent runs it in a separate process and kills that.
func TestParent(t *testing.T) {
	dir := os.Getenv("PG_TEST_DIR")
	if dir == "" {
		return
	}
	s, err := Start(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(s.proc.PID())
	select {}
}

func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pg")
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestParent$")
		cmd.Env = append(os.Environ(), "PG_TEST_DIR="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		pid, perr := strconv.Atoi(strings.TrimSpace(line))
		if kerr := cmd.Process.Kill(); err != nil || perr != nil || kerr != nil {
			t.Fatalf("%q %v %v %v; want perr == nil && kerr == nil", line, err, perr, kerr)
		}
		_ = cmd.Wait()                        // it was killed, which is an error here
		s := startServer(t, Config{Dir: dir}) // at once, while the other may still be shutting down
		if s.proc.PID() == pid || processAlive(pid) {
			t.Errorf("the server %d outlived its parent; want s.proc.PID() != pid && !processAlive(pid)", pid)
		}
		queryValue[int](t, s, "select 1")
		stopServer(t, s)
	}
}

// awaitFile returns when there is such a file, or after 20 s: it may come and go between two looks.
func awaitFile(path string) {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	late := time.After(20 * time.Second)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-look.C:
		case <-late:
			return
		}
	}
}

// processAlive reports whether the process with this id exists and is no zombie.
func processAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(after, []byte("Z"))
}

func TestAnOrphanIsEnded(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: filepath.Join(t.TempDir(), "pg")}
	orphan, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := orphan.lock.Unlock(); err != nil { // as the death of its parent does
		t.Fatal(err)
	}
	s := startServer(t, cfg)
	select {
	case <-orphan.proc.Done():
	default:
		t.Error("two servers run in one directory")
	}
	queryValue[int](t, s, "select 1")
}

func TestAStalePidFileIsNoObstacle(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: filepath.Join(t.TempDir(), "pg")}
	s := startServer(t, cfg)
	stopServer(t, s)
	// The id belongs to another process now, here to the parent of this one.
	pidFile := filepath.Join(cfg.Dir, "data", "postmaster.pid")
	if err := os.WriteFile(pidFile, fmt.Appendf(nil, "%d\n/x\n1\n1\n\n127.0.0.1\n1 1\nready\n", os.Getppid()), 0o600); err != nil {
		t.Fatal(err)
	}
	queryValue[int](t, startServer(t, cfg), "select 1")
}

func TestAnUnfinishedClusterIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pg")
	if err := os.MkdirAll(filepath.Join(dir, "data.part", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	queryValue[int](t, startServer(t, Config{Dir: dir}), "select 1")
}

func TestRemovalOutlastsWriters(t *testing.T) {
	t.Parallel()
	part := filepath.Join(t.TempDir(), "data.part")
	base := filepath.Join(part, "base")
	if err := os.MkdirAll(base, 0o700); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	end := time.Now().Add(300 * time.Millisecond)
	for w := range 4 {
		writers.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				_ = os.WriteFile(filepath.Join(base, fmt.Sprintf("%d-%d", w, i)), nil, 0o600) // fails once base is gone
			}
		})
	}
	if err := removeUnfinished(t.Context(), part); err != nil {
		t.Error(err)
	}
	writers.Wait()
	if _, err := os.Stat(part); !os.IsNotExist(err) {
		t.Errorf("still there: %v; want os.IsNotExist(err)", err)
	}
}

func TestParentKilledDuringInitdb(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pg")
	for _, made := range []string{"PG_VERSION", "base/1", "global/pg_control", "base/4"} { // in initdb's order
		cmd := exec.Command(os.Args[0], "-test.run=^TestParent$")
		cmd.Env = append(os.Environ(), "PG_TEST_DIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		awaitFile(filepath.Join(dir, "data.part", made))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed, which is an error here
	}
	queryValue[int](t, startServer(t, Config{Dir: dir}), "select 1")
}

func TestDatabaseOfTheCallersChoice(t *testing.T) {
	t.Parallel()
	s := startServer(t, Config{Dir: filepath.Join(t.TempDir(), "pg"), Database: `odd "name"`, Throwaway: true, MaxConnections: 20})
	conn, err := pgx.Connect(t.Context(), s.URL(`odd "name"`))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func expectError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", texts)
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q; want strings.Contains(err.Error(), s)", err, s)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than a sentence; want !strings.Contains(err.Error(), \"\\n\")", err)
	}
}

func TestFaultsAreSentences(t *testing.T) {
	t.Parallel()
	write := func(file, text string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	try := func(cfg Config) error {
		s, err := Start(t.Context(), cfg)
		if err == nil {
			stopServer(t, s)
		}
		return err
	}
	newer := t.TempDir()
	write(filepath.Join(newer, "data", "PG_VERSION"), "99\n")
	expectError(t, try(Config{Dir: newer}), "made by PostgreSQL 99", "install PostgreSQL 99")

	broken := t.TempDir()
	write(filepath.Join(broken, "data", "PG_VERSION"), "x")
	expectError(t, try(Config{Dir: broken}), "not a version")

	foreign := t.TempDir()
	write(filepath.Join(foreign, "data", "holiday.jpg"), "x")
	expectError(t, try(Config{Dir: foreign}), "no cluster in it")

	file := write(filepath.Join(t.TempDir(), "file"), "")
	expectError(t, try(Config{Dir: filepath.Join(file, "pg")}), "cannot be made", "choose another one")

	lost := Config{Dir: filepath.Join(t.TempDir(), "pg"), Throwaway: true}
	stopServer(t, startServer(t, lost))
	if err := os.Remove(filepath.Join(lost.Dir, "password")); err != nil {
		t.Fatal(err)
	}
	expectError(t, try(lost), "password is missing")

	damaged := Config{Dir: filepath.Join(t.TempDir(), "pg"), Throwaway: true}
	stopServer(t, startServer(t, damaged))
	if err := os.Remove(filepath.Join(damaged.Dir, "data", "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	expectError(t, try(damaged), "did not start", "pg_control")

	late, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	if s, err := Start(late, Config{Dir: t.TempDir()}); err == nil {
		stopServer(t, s)
		t.Error("started although it was interrupted")
	}
}

func TestLogIsExplained(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"FATAL:  could not write to file \"base/1\": No space left on device\n": "is full",
		"FATAL:  could not resize shared memory segment: x\n":                   "/dev/shm",
		"FATAL:  could not open \"x\": Permission denied\n":                     "may not use",
		"LOG:  a\nFATAL:  the cause\nLOG:  shut down\n":                         "the cause",
		"the only line\n": "the only line",
		"":                "it said nothing",
	} {
		c := &cluster{dir: "/data", log: &tail{}}
		for part := []byte(text); len(part) > 0; part = part[1:] { // lines come in pieces
			_, _ = c.log.Write(part[:1])
		}
		expectError(t, c.explain("the server did not start", errors.New("exit status 1")), want)
	}
	var forwarded bytes.Buffer
	l := &tail{to: &forwarded}
	for i := range 100 {
		fmt.Fprintf(l, "line %d\n", i)
	}
	if len(l.lines) != tailLines || l.last() != "line 99" || strings.Count(forwarded.String(), "\n") != 100 {
		t.Errorf("%d lines, last %q; want len(l.lines) == tailLines && l.last() == \"line 99\" && strings.Count(forwarded.String(), \"\\n\") == 100", len(l.lines), l.last())
	}
}

func TestStartAndStopFromManySides(t *testing.T) {
	t.Parallel()
	s := startServer(t, Config{Dir: filepath.Join(t.TempDir(), "pg"), Throwaway: true})
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { stopServer(t, s) })
	}
	wg.Wait()
}
