package pg

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

type binaries struct {
	dir   string // holds postgres and initdb
	major int
}

// places are the directories in which distributions and Homebrew install server
// binaries.
var places = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*",
	"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin", "/usr/local/pgsql/bin",
}

// besideProgram is where a release keeps its own server, below the folder of the program.
const besideProgram = "postgres/bin"

// executable is replaced by tests.
var executable = os.Executable

// oldest is the first major version whose initdb and settings are used here.
const oldest = 14

// ErrNoBinaries means that no usable Postgres server is installed.
var ErrNoBinaries = fmt.Errorf("no PostgreSQL server of version %d or later is installed", oldest)

// FindBinaries is the newest Postgres server on this machine: its folder and
// major version, or ErrNoBinaries.
func FindBinaries() (dir string, major int, err error) {
	found := findInstalled()
	if len(found) == 0 {
		return "", 0, ErrNoBinaries
	}
	return found[0].dir, found[0].major, nil
}

// findInstalled lists the servers on this machine, newest first.
func findInstalled() []binaries {
	var dirs []string
	if p, err := exec.LookPath("postgres"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			dirs = append(dirs, filepath.Dir(p))
		}
	}
	for _, pattern := range places {
		m, _ := filepath.Glob(pattern) // fails for a bad pattern only
		dirs = append(dirs, m...)
	}
	slices.Sort(dirs)
	var found []binaries
	for _, dir := range slices.Compact(dirs) {
		if b, ok := inspectBinaries(dir); ok {
			found = append(found, b)
		}
	}
	slices.SortStableFunc(found, func(a, b binaries) int { return cmp.Compare(b.major, a.major) })
	return found
}

// findBesideProgram returns the server of the release that the program belongs to: nil without an error when it belongs
// to none. Root starts the server as another user, who must be able to reach it.
func findBesideProgram(root bool) (*binaries, error) {
	program, err := executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return nil, nil // nothing is beside a program without a path
	}
	dir := filepath.Join(filepath.Dir(program), besideProgram)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if root && !reachableByAll(dir) {
		return nil, fmt.Errorf("only root can enter %s, and Postgres refuses to run as root; unpack the release where every user may enter, such as /opt, or run it as an ordinary user", dir)
	}
	if b, ok := inspectBinaries(dir); ok {
		return &b, nil
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").CombinedOutput()
	if err == nil {
		err = errors.New("its folder is incomplete; unpack the release again")
	}
	return nil, fmt.Errorf("the PostgreSQL of this release, in %s, does not run here: %w; postgres --version printed %q", dir, err, strings.TrimSpace(string(out)))
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func inspectBinaries(dir string) (binaries, bool) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return binaries{}, false
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return binaries{}, false
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return binaries{}, false
	}
	major, err := strconv.Atoi(string(m[1]))
	return binaries{dir: dir, major: major}, err == nil && major >= oldest
}

// chooseBinaries prefers the release's own binaries to installed ones, installed ones to a download, and of all the
// version that made the data: a cluster can be served by its own major version only. major is 0 for new data.
func chooseBinaries(major int, data, cacheDir string, root bool, log io.Writer) (binaries, error) {
	found, ownErr := listBinaries(root)
	if ownErr != nil {
		fmt.Fprintf(log, "%v\n", ownErr) // another server may do
	}
	for _, b := range found {
		if major == 0 || b.major == major {
			return b, nil
		}
	}
	b, err := downloadBinaries(major, cacheDir, root, log)
	switch {
	case err == nil:
		return b, nil
	case ownErr != nil:
		return binaries{}, fmt.Errorf("postgres: %w; no other server could be used either (%w)", ownErr, err)
	case len(found) > 0:
		return binaries{}, fmt.Errorf("postgres: the data in %s was made by PostgreSQL %d, but version %d is installed and version %d could not be downloaded (%w); install PostgreSQL %d or set PLATFORM_DATABASE_URL", data, major, found[0].major, major, err, major)
	default:
		return binaries{}, fmt.Errorf("postgres: %w and none could be downloaded (%w); install one or set PLATFORM_DATABASE_URL", ErrNoBinaries, err)
	}
}

// listBinaries lists the servers that need no download, the best first, and why the release's own cannot be used.
func listBinaries(root bool) ([]binaries, error) {
	found := findInstalled()
	own, err := findBesideProgram(root)
	if own != nil {
		found = slices.Insert(found, 0, *own)
	}
	return found, err
}

// releases are the versions that can be downloaded.
var releases = map[int]embeddedpostgres.PostgresVersion{
	14: embeddedpostgres.V14, 15: embeddedpostgres.V15, 16: embeddedpostgres.V16,
	17: embeddedpostgres.V17, 18: embeddedpostgres.V18,
}

const defaultRelease = 17

func downloadBinaries(major int, cacheDir string, root bool, log io.Writer) (binaries, error) {
	if major == 0 {
		major = defaultRelease
	}
	release, ok := releases[major]
	if !ok {
		return binaries{}, fmt.Errorf("there is no download of PostgreSQL %d", major)
	}
	if cacheDir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return binaries{}, err
		}
		cacheDir = filepath.Join(dir, "mlp-platform", "postgres")
	}
	if root && !reachableByAll(cacheDir) {
		cacheDir = "/var/cache/mlp-platform/postgres"
	}
	target := filepath.Join(cacheDir, "server-"+string(release))
	bin := filepath.Join(target, "bin")
	if b, ok := inspectBinaries(bin); ok {
		return b, nil
	}
	if err := makeOpen(cacheDir); err != nil {
		return binaries{}, err
	}
	scratch, err := os.MkdirTemp(cacheDir, "fetch-")
	if err != nil {
		return binaries{}, err
	}
	defer os.RemoveAll(scratch)
	port, err := freePort()
	if err != nil {
		return binaries{}, err
	}
	// The library offers its download only as the first part of a start. A locale
	// that initdb refuses ends that start right after.
	server, run := filepath.Join(scratch, "server"), filepath.Join(scratch, "run")
	lib := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().Version(release).Logger(log).
		CachePath(scratch).RuntimePath(run).BinariesPath(server).
		Locale("none").Port(uint32(port)))
	startErr := lib.Start()
	if startErr == nil {
		startErr = lib.Stop()
	}
	// The library makes run when the last file is in place, so its absence means
	// a download cut off.
	if _, err := os.Stat(run); err != nil {
		return binaries{}, cmp.Or(startErr, err)
	}
	if err := openTree(server); err != nil {
		return binaries{}, err
	}
	// In one step, so that an interrupted download leaves nothing that looks whole.
	if err := os.Rename(server, target); err != nil {
		if b, ok := inspectBinaries(bin); ok {
			return b, nil // another process was faster
		}
		if err := errors.Join(os.RemoveAll(target), os.Rename(server, target)); err != nil {
			return binaries{}, err
		}
	}
	if b, ok := inspectBinaries(bin); ok {
		return b, nil
	}
	return binaries{}, fmt.Errorf("the downloaded PostgreSQL in %s does not run on this machine", target)
}

// makeOpen makes dir and its missing parents so that every user may enter them:
// root's umask may be strict, and the server runs as another user.
func makeOpen(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := makeOpen(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return os.Chmod(dir, 0o755)
}

// openTree gives every user the owner's right to read and run the files below dir.
func openTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		perm := info.Mode().Perm()
		return os.Chmod(path, perm|perm>>6&0o5)
	})
}

// reachableByAll reports whether every user may enter dir, or will once it is made.
func reachableByAll(dir string) bool {
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if info, err := os.Stat(d); err == nil && info.Mode().Perm()&0o005 != 0o005 {
			return false
		}
		if d == filepath.Dir(d) {
			return true
		}
	}
}
