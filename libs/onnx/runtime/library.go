package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// ErrMissing means that no usable ONNX Runtime library was found. Models cannot be opened until Init succeeds; Init may
// be retried later.
var ErrMissing = errors.New("ONNX Runtime library missing")

// FetchedDigest is the SHA-256 of the library that the set-up script fetches (npm onnxruntime-node 1.24.3, Linux x64).
// A file in the cache folder with another digest is refused; a library that the operator installed or named is used
// unchecked.
const FetchedDigest = "92ba8e44d31b80a34f5e805076a044122c3be1fffe0d88ed790de7267b0b2682"

// fetchedPath is the path of the library that the set-up script installs, below the repository or data directory.
const fetchedPath = ".cache/onnxruntime/libonnxruntime.so.1"

var (
	initMu sync.Mutex // serialises loading; the binding's own state is global and unguarded
	loaded string     // the library in use, guarded by initMu
)

// Init loads the library at libPath, or the first that the lookup finds when libPath is empty: ORT_LIB,
// beside the binary, /usr/lib, /usr/local/lib, /opt/onnxruntime/lib, then the fetched one below any of
// dataDirs, the working directory, the binary's directory, or a parent of these two. Once it succeeded,
// further calls do nothing. Errors wrap ErrMissing.
func Init(libPath string, dataDirs ...string) error {
	initMu.Lock()
	defer initMu.Unlock()
	if ort.IsInitialized() {
		return nil
	}
	if libPath == "" {
		var err error
		if libPath, err = newLookup(dataDirs).find(); err != nil {
			return err
		}
	}
	if _, err := os.Stat(libPath); err != nil {
		return fmt.Errorf("%w: %v", ErrMissing, err)
	}
	ort.SetSharedLibraryPath(libPath)
	// Faults come back as errors; the library's own log lines on stderr would only repeat them.
	if err := ort.InitializeEnvironment(ort.WithLogLevelFatal()); err != nil {
		return fmt.Errorf("%w: %s cannot be used: %v; ONNX Runtime 1.24 or newer is needed", ErrMissing, libPath, err)
	}
	loaded = libPath
	return nil
}

// LibraryVersion is that of the library that Init has loaded.
func LibraryVersion() string { return ort.GetVersion() }

// LibraryPath is the file that Init has loaded; "" before that.
func LibraryPath() string {
	initMu.Lock()
	defer initMu.Unlock()
	return loaded
}

// FindLibrary returns the library that Init would load, without loading it. The error wraps ErrMissing.
func FindLibrary() (string, error) { return newLookup(nil).find() }

// lookup holds the places to search, in order.
type lookup struct {
	env        string   // value of ORT_LIB: when set, nothing else is searched
	dirs       []string // folders with an installed library
	cacheRoots []string // folders that may hold fetchedPath
	digest     string
}

func newLookup(dataDirs []string) lookup {
	l := lookup{env: os.Getenv("ORT_LIB"), digest: FetchedDigest}
	l.cacheRoots = append(l.cacheRoots, dataDirs...)
	if wd, err := os.Getwd(); err == nil {
		l.cacheRoots = append(l.cacheRoots, ancestorDirs(wd)...)
	}
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		l.dirs = append(l.dirs, filepath.Dir(exe))
		l.cacheRoots = append(l.cacheRoots, ancestorDirs(filepath.Dir(exe))...)
	}
	l.dirs = append(l.dirs, "/usr/lib", "/usr/local/lib", "/opt/onnxruntime/lib")
	return l
}

func ancestorDirs(dir string) []string {
	dirs := []string{dir}
	for parent := filepath.Dir(dir); parent != dir; parent = filepath.Dir(dir) {
		dirs = append(dirs, parent)
		dir = parent
	}
	return dirs
}

func (l lookup) find() (string, error) {
	if l.env != "" {
		if !isFile(l.env) {
			return "", fmt.Errorf("%w: ORT_LIB names %s, which is not a readable file; correct it or unset it", ErrMissing, l.env)
		}
		return l.env, nil
	}
	for _, dir := range l.dirs {
		for _, name := range []string{"libonnxruntime.so.1", "libonnxruntime.so"} {
			if path := filepath.Join(dir, name); isFile(path) {
				return path, nil
			}
		}
	}
	var refused []string
	for _, root := range l.cacheRoots {
		path := filepath.Join(root, fetchedPath)
		if !isFile(path) {
			continue
		}
		got, err := fileDigest(path)
		if err == nil && got == l.digest {
			return path, nil
		}
		if err == nil {
			err = fmt.Errorf("SHA-256 is %s, expected %s", got, l.digest)
		}
		refused = append(refused, fmt.Sprintf("%s refused: %v", path, err))
	}
	if len(refused) > 0 {
		return "", fmt.Errorf("%w: %s; delete it and run make setup to fetch it again", ErrMissing, strings.Join(refused, "; "))
	}
	return "", fmt.Errorf("%w: set ORT_LIB to libonnxruntime.so.1, or put that file beside the binary or in one of %s",
		ErrMissing, strings.Join(l.dirs, ", "))
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
