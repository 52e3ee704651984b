package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
)

const (
	// lowSpace is the free space below which the disk is worth a warning: the event stream alone may take 256 MiB.
	lowSpace = 1 << 30
	// backupDue is the age at which a backup is old.
	backupDue = 7 * 24 * time.Hour
	// databaseWait limits each look into the database.
	databaseWait = 5 * time.Second
)

// checkDirectory reports whether there is a data directory to look into.
func (e *examination) checkDirectory() bool {
	var err error
	e.dir, err = datadir.Inspect(e.DataDir)
	e.report.DataDir, e.report.State = e.dir.Path, "stopped"
	if e.dir.Held {
		e.report.State = "running"
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		e.report.State = "unknown"
		e.notChecked("data-directory", e.dir.Path, "%v; run this command as its owner", err)
		return false
	case err != nil:
		e.fail("data-directory", e.dir.Path, "export PLATFORM_DATA_DIR="+filepath.Join(filepath.Dir(e.dir.Path), "platform-data"), "%v", err)
		e.report.State = "unknown"
		return false
	case !e.dir.Exists:
		e.report.State = "absent"
		e.notChecked("data-directory", e.dir.Path, "it does not exist: the first start makes it, and PLATFORM_DATA_DIR names another; what it would hold is not checked")
		return false
	}
	sound := true
	for _, f := range []struct {
		err error
		fix string
	}{
		{e.dir.OwnerErr, "chown -R \"$(id -u)\" " + e.dir.Path},
		{e.dir.ModeErr, "chmod 700 " + e.dir.Path},
		{e.dir.ParentErr, "mv " + e.dir.Path + " ~/platform-data && export PLATFORM_DATA_DIR=~/platform-data"},
		{e.dir.ContentErr, "find " + e.dir.Path + " ! -user \"$(id -u)\" -ls"},
		{e.dir.LayoutErr, "export PLATFORM_DATA_DIR=" + e.dir.Path + "-new"},
	} {
		if f.err != nil {
			e.fail("data-directory", e.dir.Path, f.fix, "%v", f.err)
			sound = false
		}
	}
	if sound {
		e.ok("data-directory", e.dir.Path, "closed to other users, layout %d", datadir.Layout)
	}
	return true
}

func (e *examination) checkDisk() {
	const fix = "du -xh --max-depth=2 "
	switch {
	case e.dir.FreeErr != nil:
		e.notChecked("disk", e.dir.Path, "%v", e.dir.FreeErr)
	case e.dir.Free < datadir.MinFree:
		e.fail("disk", e.dir.Path, fix+e.dir.Path, "%d MB are free, and a start needs %d MB", e.dir.Free>>20, datadir.MinFree>>20)
	case e.dir.Free < lowSpace:
		e.warn("disk", e.dir.Path, fix+e.dir.Path, "%d MB are free", e.dir.Free>>20)
	default:
		e.ok("disk", e.dir.Path, "%d MB are free", e.dir.Free>>20)
	}
}

// partial are the names under which files and folders are written before they get their own.
var partial = []string{".credentials*", ".delegation.key.*", ".audit-key-*", ".modelrepo-*", ".seeded.json*", ".runtime.json*", ".last-*", "audit-signing.key*.tmp"}

func (e *examination) checkLeftovers() {
	const check = "leftovers"
	before := len(e.report.Findings)
	if e.dir.Held {
		if e.dir.RuntimeErr != nil {
			e.fail(check, e.path("runtime.json"), e.platform("stop")+"; "+e.platform(), "%v", e.dir.RuntimeErr)
			return
		}
		e.ok(check, e.path("platform.lock"), "held by the running platform%s", e.dir.Holder)
		return
	}
	if e.dir.Killed {
		e.warn(check, e.path("runtime.json"), e.platform(), "the last platform was killed; a start recovers what it acknowledged")
	}
	pidFile := e.path("postgres", "data", "postmaster.pid")
	switch {
	case e.server.PID == 0:
	case e.server.Serves && !e.server.Held:
		e.warn(check, pidFile, e.platform(), "the PostgreSQL of a killed platform still runs (pid %d); a start ends it", e.server.PID)
	case e.server.Serves:
		e.fail(check, pidFile, fmt.Sprintf("kill -INT %d", e.server.PID), "another program runs PostgreSQL on this data (pid %d), and no platform runs", e.server.PID)
	default:
		e.warn(check, pidFile, e.platform(), "process %d, which it names, is not a server of this data; a start removes the file", e.server.PID)
	}
	if part := e.server.Unfinished; part != "" {
		e.warn(check, part, e.platform(), "the making of the database was interrupted; a start begins again")
	}
	for _, pattern := range partial {
		found, _ := filepath.Glob(e.path(pattern)) // fails for a bad pattern only
		for _, path := range found {
			e.warn(check, path, "rm -r "+path, "an interrupted write left it half written")
		}
	}
	if len(e.report.Findings) == before {
		e.ok(check, e.dir.Path, "nothing of a killed platform is left")
	}
}

// checkRecords reads the files that the platform writes about itself.
func (e *examination) checkRecords() {
	for _, record := range []struct {
		name, fix string
		read      func() error
	}{
		{"seeded.json", "rm ", func() error { return e.SeededErr(e.path("seeded.json")) }},
		{"last-backup.json", "rm ", func() error { _, err := datadir.ReadBackup(e.dir.Path); return err }},
		{"last-ready.json", "rm ", func() error { _, err := datadir.ReadReady(e.dir.Path); return err }},
	} {
		if err := record.read(); err != nil && !isAbsent(err) {
			e.fail("records", e.path(record.name), record.fix+e.path(record.name), "it cannot be read; the platform writes it anew: %v", err)
		}
	}
}

func (e *examination) checkPostgres() {
	if e.DatabaseURL != "" {
		e.notChecked("postgres", "PLATFORM_DATABASE_URL", "the server is not part of this installation")
		return
	}
	data, s := e.path("postgres", "data"), e.server
	switch {
	case s.DataErr != nil:
		e.fail("postgres", data, e.restore(), "%v", s.DataErr)
		return
	case s.ServerErr != nil && s.Data != 0:
		e.fail("postgres", data, fmt.Sprintf("apt-get install postgresql-%d", s.Data), "%v", s.ServerErr)
	case s.ServerErr != nil:
		e.fail("postgres", "", e.Typed.RestoreFiles(), "%v; a start would download one", s.ServerErr)
	case checkELF(filepath.Join(s.Server, "postgres")) != nil:
		e.fail("postgres", s.Server, e.Typed.RestoreFiles(), "%v", checkELF(filepath.Join(s.Server, "postgres")))
	case s.Data == 0:
		e.ok("postgres", s.Server, "version %d; there is no database yet", s.Major)
	default:
		e.ok("postgres", s.Server, "version %d, as the data", s.Major)
	}
	if s.OwnerErr != nil {
		e.fail("postgres.owner", data, "sudo -u \"#$(stat -c %u "+data+")\" "+e.platform(), "%v", s.OwnerErr)
	}
}

// restore is the command that fills a directory from the last backup, if its file is known.
func (e *examination) restore() string {
	file := "BACKUP"
	if b, err := datadir.ReadBackup(e.dir.Path); err == nil {
		file = b.File
	}
	return "export PLATFORM_DATA_DIR=" + e.dir.Path + "-restored && " + e.platform("restore", file)
}

// checkVersions compares the database, or what the last start recorded of it, with this program.
func (e *examination) checkVersions(ctx context.Context) {
	url := e.server.URL
	switch {
	case e.DatabaseURL != "":
		url = e.DatabaseURL.Reveal()
	case e.dir.Held && url == "":
		e.notChecked("schemas", e.path("postgres"), "the socket of the running database cannot be found")
		return
	case !e.dir.Held:
		e.checkRecordedVersions()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, databaseWait)
	defer cancel()
	conn, err := connectToRead(ctx, url)
	if err != nil {
		where, fix := e.path("postgres"), "tail -n 50 "+e.path("platform.log")
		if e.DatabaseURL != "" {
			where, fix = "PLATFORM_DATABASE_URL", `psql "$PLATFORM_DATABASE_URL" -c 'select 1'`
		}
		e.fail("schemas", where, fix, "the database does not answer: %v", err)
		return
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read from
	for _, s := range e.Schemas {
		versions, err := s.Versions(ctx, conn)
		if err != nil {
			e.notChecked("schema."+s.Name, s.Name, "%v", err)
			continue
		}
		e.compareSchema(s, versions, "the database")
	}
}

func connectToRead(ctx context.Context, url string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("its URL cannot be read") // pgx quotes the URL, and with it the password
	}
	cfg.RuntimeParams["default_transaction_read_only"] = "on"
	cfg.RuntimeParams["application_name"] = "platform-doctor"
	return pgx.ConnectConfig(ctx, cfg)
}

func (e *examination) checkRecordedVersions() {
	ready, err := datadir.ReadReady(e.dir.Path)
	if err != nil {
		e.notChecked("schemas", e.dir.Path, "the database is stopped, and no start has recorded its versions")
		return
	}
	for _, s := range e.Schemas {
		e.compareSchema(s, ready.Schemas[s.Name], "version "+ready.Version+", which was ready at "+ready.At.Format(time.RFC3339)+",")
	}
}

// compareSchema reports a schema whose versions, as found by source, differ from those that this program knows.
func (e *examination) compareSchema(s postgres.Schema, found map[string]int, source string) {
	check := "schema." + s.Name
	known, err := s.Known()
	if err != nil {
		e.notChecked(check, s.Name, "%v", err)
		return
	}
	var equal []string
	for _, set := range s.Sets {
		switch have, want := found[set.Name], known[set.Name]; {
		case have > want:
			e.fail(check, s.Name, e.platform("version"), "%s has version %d of %s, and this program knows %d: install the version that migrated it, or restore an older backup", source, have, set.Name, want)
			return
		case have < want && e.dir.Held:
			e.fail(check, s.Name, e.restart(), "%s has version %d of %s, and this program needs %d: restart the platform with this program", source, have, set.Name, want)
			return
		case have < want:
			e.warn(check, s.Name, e.platform("backup", "FILE")+" && "+e.platform(), "%s has version %d of %s; the next start migrates to %d, and older programs cannot use it then", source, have, set.Name, want)
			return
		}
		equal = append(equal, fmt.Sprintf("%s %d", set.Name, known[set.Name]))
	}
	e.ok(check, s.Name, "%s", strings.Join(equal, ", "))
}

// checkContent looks at the model repository and the evidence store.
func (e *examination) checkContent() {
	repo := e.path("modelrepo")
	r, err := git.PlainOpen(repo)
	var remotes []*git.Remote
	if err == nil {
		if _, err = r.Head(); err == nil {
			remotes, err = r.Remotes()
		}
	}
	elsewhere := slices.ContainsFunc([]string{"MODELREPO_GIT_URL", "MODELREPO_GIT_URL_FILE", "GITLAB_PROJECT_ID"}, func(name string) bool { return e.lookup(name) != "" })
	_, statErr := os.Stat(repo)
	switch {
	case isAbsent(statErr):
		e.notChecked("model-repository", repo, "it does not exist: a start makes it of the samples")
	case err != nil:
		e.fail("model-repository", repo, "git -C "+repo+" fsck", "it cannot be read as a git repository: %v", err)
	case len(remotes) == 0 && !elsewhere:
		e.warn("model-repository", repo, "git -C "+repo+" remote add origin URL && git -C "+repo+" push origin HEAD", "it exists on this disk alone: it has no remote, and neither MODELREPO_GIT_URL nor GITLAB_PROJECT_ID is set")
	default:
		e.ok("model-repository", repo, "readable, with a copy elsewhere")
	}
	const magic = "SQLite format 3\x00"
	store := e.path("evidence", "store.sqlite")
	head := make([]byte, len(magic))
	f, err := os.Open(store)
	if err == nil {
		defer f.Close()
		_, err = io.ReadFull(f, head)
	}
	switch {
	case isAbsent(err):
		e.notChecked("evidence", store, "it does not exist: a start makes it with samples")
	case err != nil || string(head) != magic:
		e.fail("evidence", store, e.restore(), "it is not a store: its head is damaged")
	default:
		e.ok("evidence", store, "its head is that of a store; %s reads all of it", e.Typed.Command("svc", "verify", store))
	}
}

func (e *examination) checkBackup() {
	if e.DatabaseURL != "" {
		e.notChecked("backup", "PLATFORM_DATABASE_URL", "backups of that database are not recorded here")
		return
	}
	file := filepath.Join(filepath.Dir(e.dir.Path), "platform-"+e.Now.Format("2006-01-02")+".tar.zst")
	fix := e.restart(e.platform("backup", file))
	b, err := datadir.ReadBackup(e.dir.Path)
	switch {
	case isAbsent(err):
		e.warn("backup", e.dir.Path, fix, "no backup has been made of this directory")
	case err != nil: // reported with the records
	case e.Now.Sub(b.At) > backupDue:
		e.warn("backup", b.File, fix, "the last backup is %d days old", days(e.Now.Sub(b.At)))
	default:
		if _, err := os.Stat(b.File); err != nil {
			e.notChecked("backup", b.File, "the last backup, of %s, is no longer there: it was moved, or is lost", b.At.Format(time.RFC3339))
			return
		}
		e.ok("backup", b.File, "of %s", b.At.Format(time.RFC3339))
	}
}

func days(d time.Duration) int { return int(d / (24 * time.Hour)) }

func (e *examination) checkHealth(ctx context.Context) {
	if !e.dir.Held {
		e.notChecked("services", "", "the platform is stopped")
		return
	}
	if err := e.Health(ctx); err != nil {
		for line := range strings.Lines(err.Error()) {
			name, detail, _ := strings.Cut(strings.TrimSpace(line), ": ")
			e.fail("services", name, "tail -n 50 "+e.path("platform.log"), "%s", detail)
		}
		return
	}
	e.ok("services", "", "all are ready")
}
