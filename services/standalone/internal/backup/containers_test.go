package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mountContainers makes the folders that a container sees: secrets and volumes, with some files or, without any, empty.
func mountContainers(t *testing.T, files map[string]string, volumes ...string) string {
	t.Helper()
	dir := t.TempDir()
	folders := []string{"secrets"}
	for _, name := range volumes {
		folders = append(folders, "volumes/"+name)
	}
	for _, folder := range folders {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newContainers(t *testing.T) string {
	t.Helper()
	return mountContainers(t, map[string]string{
		"secrets/credentials.json": "{}", "secrets/nats/nats.conf": "port: 1\n", "volumes/postgres/pgdata/PG_VERSION": "17\n",
		"volumes/postgres/platform.log": "a name that a data directory leaves out\n", "volumes/nats/cache/1.blk": strings.Repeat("event", 1000),
	}, "nats", "postgres", "worker")
}

func packContainers(t *testing.T, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := WriteContainers(t.Context(), dir, &out, time.Now()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRestoredContainersAreWhatWasBackedUp(t *testing.T) {
	t.Parallel()
	dir, to := newContainers(t), mountContainers(t, nil, "nats", "postgres", "worker")
	if err := os.Chmod(filepath.Join(dir, "volumes", "postgres"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	wrote, err := WriteContainers(t.Context(), dir, &out, time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"nats", "postgres", "worker"}, wrote.About.Volumes); diff != "" || wrote.Files != 5 {
		t.Errorf("got %+v, want 5 files of three volumes: %s", wrote, diff)
	}
	verified, err := VerifyContainers(t.Context(), bytes.NewReader(out.Bytes()))
	if diff := cmp.Diff(wrote, verified); err != nil || diff != "" {
		t.Errorf("verified: %v (-wrote +got):\n%s", err, diff)
	}
	read, err := RestoreContainers(t.Context(), bytes.NewReader(out.Bytes()), to)
	if diff := cmp.Diff(wrote, read); err != nil || diff != "" {
		t.Errorf("restored: %v (-wrote +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(tree(t, dir), tree(t, to)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}

// A refused backup leaves the volumes and the folder of secrets as empty as they were.
func TestRefusedBackupsOfContainers(t *testing.T) {
	t.Parallel()
	whole := packContainers(t, newContainers(t))
	file := filepath.Join(t.TempDir(), "b")
	if _, err := Write(t.Context(), newDataDir(t), file, time.Now()); err != nil {
		t.Fatal(err)
	}
	process, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	about := func(volumes string) entry {
		return entry{tar.Header{Name: aboutAs}, `{"format": 1, "kind": "containers", "volumes": [` + volumes + `]}`}
	}
	secrets, sums := entry{tar.Header{Name: "data/secrets/credentials.json"}, "{}"}, sum("data/secrets/credentials.json", "{}")
	for name, c := range map[string]struct {
		file  []byte
		want  string
		later bool // found by the restore alone
	}{
		"nothing":             {nil, "is no backup", false},
		"half":                {whole[:len(whole)/2], "refused", false},
		"of one process":      {process, "restore it with platform restore", false},
		"newer format":        {pack(t, entry{tar.Header{Name: aboutAs}, `{"format": 2, "version": "9.9"}`}), "version 9.9 wrote it", false},
		"wrong digest":        {pack(t, about(""), secrets, entry{tar.Header{Name: sumsAs}, sum("data/secrets/credentials.json", "[]")}), "differs from its digest", false},
		"no secrets":          {pack(t, about(""), entry{tar.Header{Name: sumsAs}, ""}), "holds no secrets", false},
		"a volume by a path":  {pack(t, about(`"../x"`), secrets, entry{tar.Header{Name: sumsAs}, sums}), "no name of a volume", false},
		"of no listed volume": {pack(t, about(`"nats"`), secrets, entry{tar.Header{Name: "data/volumes/postgres/x"}, "x"}), "of no volume that it lists", false},
		"beside the volumes":  {pack(t, about(`"nats"`), secrets, entry{tar.Header{Name: "data/x"}, "x"}), "of no volume that it lists", false},
		"parent":              {pack(t, about(""), secrets, entry{tar.Header{Name: "data/../x"}, "x"}), "leads out", false},
		"a file twice":        {pack(t, about(""), secrets, secrets), "exists twice", false},
		"through a link": {pack(t, about(`"nats"`), secrets, entry{tar.Header{Name: "data/volumes/nats/out", Typeflag: tar.TypeSymlink, Linkname: "../../.."}, ""},
			entry{tar.Header{Name: "data/volumes/nats/out/x"}, "x"}), "escapes", true},
		"another volume": {pack(t, about(`"redis"`), secrets, entry{tar.Header{Name: sumsAs}, sums}), "redis, which is not mounted", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := VerifyContainers(t.Context(), bytes.NewReader(c.file)); !c.later && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("verified: got %v, want %q", err, c.want)
			}
			to := mountContainers(t, nil, "nats", "postgres", "worker")
			before := tree(t, to)
			if _, err := RestoreContainers(t.Context(), bytes.NewReader(c.file), to); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("restored: got %v, want %q", err, c.want)
			}
			if diff := cmp.Diff(before, tree(t, to)); diff != "" {
				t.Errorf("it was refused and left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContainersAreRestoredIntoEmptyVolumes(t *testing.T) {
	t.Parallel()
	whole := packContainers(t, newContainers(t))
	for _, taken := range []string{"secrets/credentials.json", "volumes/nats/1.blk"} {
		to := mountContainers(t, map[string]string{taken: "of somebody"}, "nats", "postgres", "worker")
		before := tree(t, to)
		if _, err := RestoreContainers(t.Context(), bytes.NewReader(whole), to); err == nil || !strings.Contains(err.Error(), "is not empty") {
			t.Errorf("%s is there: got %v, want that it is not empty", taken, err)
		}
		if diff := cmp.Diff(before, tree(t, to)); diff != "" {
			t.Errorf("%s is there: it was refused and changed (-want +got):\n%s", taken, diff)
		}
	}
}

func TestContainersWithoutSecretsAreNoPlatform(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	_, err := WriteContainers(t.Context(), mountContainers(t, nil, "nats"), &out, time.Now())
	if err == nil || !strings.Contains(err.Error(), "PLATFORM_SECRETS_DIR") || out.Len() > 0 {
		t.Errorf("got %v and %d bytes, want that the secrets are missing", err, out.Len())
	}
}

// An interrupted restore leaves no volume with half of its files.
func TestStoppedRestoresOfContainersLeaveNothing(t *testing.T) {
	t.Parallel()
	to := mountContainers(t, nil, "nats", "postgres", "worker")
	before := tree(t, to)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := RestoreContainers(stopped, bytes.NewReader(packContainers(t, newContainers(t))), to); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	if diff := cmp.Diff(before, tree(t, to)); diff != "" {
		t.Errorf("a stopped restore left (-want +got):\n%s", diff)
	}
}
