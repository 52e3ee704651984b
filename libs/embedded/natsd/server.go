// Package natsd runs a NATS server with JetStream inside this process, on
// loopback, for installations that bring no broker of their own.
package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"
)

// readyTimeout limits the start; recovering the file store is part of it.
const readyTimeout = 30 * time.Second

// Connections are limited, since each takes a file of this process: those that do not sign in end soon.
const (
	maxConns    = 2048
	authTimeout = 2 * time.Second
)

// MaxMessage is the largest message in bytes, headers included.
const MaxMessage = 1 << 20

// Config configures the server.
type Config struct {
	Dir      string       // of the JetStream file store; made when absent
	Port     int          // on 127.0.0.1; 0 means any free one
	Token    string       // clients must give it; empty leaves the server open to every local user
	Users    []User       // in an account of their own, beside the holders of the token; an open server has none
	MaxBytes int64        // bound of all streams together; 0 means no bound but the disk
	Log      *slog.Logger // nil drops the log
	Name     string       // shown to clients; empty means platform

	// Throwaway acknowledges before the disk has a message, for tests; a crash of
	// the machine may then lose the newest ones.
	Throwaway bool
}

// User may publish to and subscribe to the subjects named, and to no other.
type User struct {
	Name, Password     string
	Publish, Subscribe []string
}

// usersAccount separates the users from the holders of the token: no message of the one side reaches the other. Subjects
// alone would not do, since every client's replies come to the same prefix.
const usersAccount = "USERS"

// addUsers puts the users into the options.
func (c Config) addUsers(o *server.Options) {
	if c.Token == "" || len(c.Users) == 0 {
		return
	}
	account := server.NewAccount(usersAccount)
	o.Accounts = append(o.Accounts, account)
	for _, u := range c.Users {
		o.Users = append(o.Users, &server.User{Username: u.Name, Password: u.Password, Account: account, Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: u.Publish}, Subscribe: &server.SubjectPermission{Allow: u.Subscribe},
		}})
	}
}

// Server is a running NATS server.
type Server struct {
	srv   *server.Server
	token string
	log   *slog.Logger

	diskFull *atomic.Bool // the server failed to write for lack of space

	stopping  chan struct{} // closed by Stop
	stopOnce  sync.Once
	jetstream server.JetStreamConfig // to enable JetStream again
	watching  sync.WaitGroup         // of keepJetStream
}

// Start runs the server and returns when it takes connections. Every message is
// synced to the disk before it is acknowledged (sync_interval: always).
func Start(cfg Config) (*Server, error) {
	if cfg.Name == "" {
		cfg.Name = "platform"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	for end := time.Now().Add(bindPatience); ; <-time.After(20 * time.Millisecond) {
		s, err := startOnce(cfg)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return s, err
		}
	}
}

// bindPatience limits how long a port may be in use before that is an error: a child that this process starts holds a
// copy of each of its listeners, closed ones too, until it executes its own program, and the port is checked by
// listening on it.
const bindPatience = time.Second

func startOnce(cfg Config) (*Server, error) {
	port := cfg.Port
	if port == 0 {
		port = server.RANDOM_PORT
	} else if l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
		// Checked here because the server itself would only log it.
		return nil, fmt.Errorf("nats: port %d on 127.0.0.1 is not free (%w); stop what listens there or choose another port", port, err)
	} else if err := l.Close(); err != nil {
		return nil, fmt.Errorf("nats: port %d: %w", port, err)
	}
	options := &server.Options{
		ServerName: cfg.Name, Host: "127.0.0.1", Port: port, Authorization: cfg.Token,
		JetStream: true, StoreDir: cfg.Dir, SyncAlways: !cfg.Throwaway, JetStreamMaxStore: maxStore(cfg.MaxBytes),
		MaxPayload: MaxMessage, MaxConn: maxConns, AuthTimeout: authTimeout.Seconds(), NoSigs: true, DisableShortFirstPing: true,
	}
	cfg.addUsers(options)
	srv, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	fatal := make(chan string, 1)
	diskFull := new(atomic.Bool)
	srv.SetLoggerV2(&logger{log: cfg.Log, fatal: fatal, diskFull: diskFull}, false, false, false)
	srv.Start()
	fault := "no connection after " + readyTimeout.String()
	for deadline := time.Now().Add(readyTimeout); time.Now().Before(deadline); {
		if srv.ReadyForConnections(50 * time.Millisecond) {
			// When there are other accounts, the server does not enable JetStream on the global one.
			if account := srv.GlobalAccount(); !account.JetStreamEnabled() {
				if err := account.EnableJetStream(nil, nil); err != nil {
					fault = err.Error()
					break
				}
			}
			s := &Server{srv: srv, token: cfg.Token, log: cfg.Log, diskFull: diskFull, stopping: make(chan struct{}), jetstream: server.JetStreamConfig{
				StoreDir: options.StoreDir, MaxStore: options.JetStreamMaxStore, SyncAlways: options.SyncAlways, SyncInterval: options.SyncInterval,
			}}
			s.watching.Go(s.keepJetStream)
			return s, nil
		}
		select {
		case fault = <-fatal:
			deadline = time.Time{}
		default:
		}
	}
	srv.Shutdown()
	if strings.Contains(fault, syscall.EADDRINUSE.Error()) {
		srv.WaitForShutdown() // the next try takes its store
		return nil, fmt.Errorf("nats: port %d on 127.0.0.1 is not free (%w); stop what listens there or choose another port", port, syscall.EADDRINUSE)
	}
	return nil, fmt.Errorf("nats: the server with its store in %s did not start: %s", cfg.Dir, fault)
}

// maxStore keeps a little above the sum of the streams: JetStream refuses a
// stream whose bound it cannot reserve whole.
func maxStore(limit int64) int64 {
	if limit <= 0 {
		return 0 // the server then uses the whole disk
	}
	return limit + limit/4
}

// URL is the address for clients, token included.
func (s *Server) URL() string {
	u := url.URL{Scheme: "nats", Host: s.srv.Addr().String()}
	if s.token != "" {
		u.User = url.User(s.token)
	}
	return u.String()
}

// Stop disconnects the clients, writes the store out and waits. Safe to call
// more than once.
func (s *Server) Stop() {
	s.stopOnce.Do(func() { close(s.stopping) })
	s.watching.Wait()
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
}

// restoreEvery is the pause between two tries to enable JetStream again.
const restoreEvery = time.Second

// keepJetStream enables JetStream again after a full disk. The server gives up a stream whose write failed, or all of
// JetStream, until it is started again; the streams on the disk are as they were.
func (s *Server) keepJetStream() {
	for tick := time.NewTicker(restoreEvery); ; {
		select {
		case <-s.stopping:
			tick.Stop()
			return
		case <-tick.C:
		}
		if s.diskFull.Swap(false) {
			// Publishers are refused at once then, instead of waiting for an acknowledgement.
			if err := s.srv.ShutdownJetStream(); err != nil {
				s.log.Warn("JetStream not stopped on a full disk", slog.Any("err", err))
			}
		}
		if s.srv.JetStreamEnabled() || !hasSpace(s.jetstream.StoreDir) {
			continue
		}
		if err := s.restoreJetStream(); err != nil {
			s.log.Warn("JetStream stays off", slog.Any("err", err))
			continue
		}
		s.log.Info("JetStream is on again")
	}
}

func (s *Server) restoreJetStream() error {
	cfg := s.jetstream // EnableJetStream changes it
	if err := s.srv.EnableJetStream(&cfg); err != nil {
		return err
	}
	if account := s.srv.GlobalAccount(); !account.JetStreamEnabled() {
		return account.EnableJetStream(nil, nil)
	}
	return nil
}

// restoreSpace is the free space in bytes from which JetStream is enabled again: less would be filled at once.
const restoreSpace = 4 << 20

func hasSpace(directory string) bool {
	var disk unix.Statfs_t
	return unix.Statfs(directory, &disk) == nil && disk.Bavail*uint64(disk.Bsize) >= restoreSpace
}

// logger passes the server's log on without its greeting: notices become debug.
type logger struct {
	log      *slog.Logger
	fatal    chan<- string // for Start
	diskFull *atomic.Bool  // set by an error that is one
}

func (l *logger) say(level slog.Level, format string, v []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "nats server", slog.String("text", strings.TrimSpace(fmt.Sprintf(format, v...))))
	}
}

func (l *logger) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l *logger) Warnf(format string, v ...any)   { l.say(slog.LevelWarn, format, v) }
func (l *logger) Debugf(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }
func (l *logger) Tracef(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }

// Errorf is also how the server reports a write that failed: it has no other signal for it.
func (l *logger) Errorf(format string, v ...any) {
	for _, arg := range v {
		if err, ok := arg.(error); ok && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
			l.diskFull.Store(true)
		}
	}
	l.say(slog.LevelError, format, v)
}

// Fatalf ends a stand-alone nats-server; inside another process Start reports it.
func (l *logger) Fatalf(format string, v ...any) {
	l.say(slog.LevelError, format, v)
	select {
	case l.fatal <- strings.TrimSpace(fmt.Sprintf(format, v...)):
	default:
	}
}
