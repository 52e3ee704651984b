package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/service"
)

// A backup of containers holds the secrets and the volumes in folders of these names. They are mounted so in the
// container that writes or reads it.
const (
	containers    = "containers" // its kind
	secretsFolder = "secrets"
	volumesFolder = "volumes"
)

// volumeName is one of a compose file.
var volumeName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// WriteContainers writes the secrets and the volumes that are mounted below dir to out. No container may run on them, so
// that all are of one moment.
func WriteContainers(ctx context.Context, dir string, out io.Writer, now time.Time) (Result, error) {
	if _, err := os.Stat(filepath.Join(dir, secretsFolder, "credentials.json")); err != nil {
		return Result{}, errors.New("the secrets of the containers are not there: name their folder in PLATFORM_SECRETS_DIR")
	}
	volumes, err := listVolumes(dir)
	if err != nil {
		return Result{}, err
	}
	w := &writer{ctx: ctx, result: Result{About: About{
		Format: format, Version: service.Version, MadeAt: now.UTC().Truncate(time.Second), Kind: containers, Volumes: volumes,
	}}}
	if err := w.write(dir, out, func(string) bool { return false }); err != nil {
		return Result{}, fmt.Errorf("the backup cannot be written: %w", err)
	}
	return w.result, nil
}

// listVolumes is the names of the volumes below dir.
func listVolumes(dir string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, volumesFolder))
	if err != nil {
		return nil, fmt.Errorf("no volumes are mounted: %w", err)
	}
	for _, e := range entries {
		if !volumeName.MatchString(e.Name()) {
			return nil, fmt.Errorf("%q is no name of a volume of the platform", e.Name())
		}
		names = append(names, e.Name())
	}
	return names, nil
}

// containersLayout is the layout of a backup of containers.
var containersLayout = layout{
	check: func(a About) error {
		if a.Kind != containers {
			return errors.New("it is of the data directory of one process: restore it with platform restore")
		}
		for _, name := range a.Volumes {
			if !volumeName.MatchString(name) {
				return fmt.Errorf("it lists %q, which is no name of a volume", name)
			}
		}
		return nil
	},
	allows: func(a About, name string) bool {
		top, rest, _ := strings.Cut(name, "/")
		volume, _, _ := strings.Cut(rest, "/")
		return top == secretsFolder || top == volumesFolder && (rest == "" || slices.Contains(a.Volumes, volume))
	},
	mounted: func(name string) bool {
		return name == secretsFolder || name == volumesFolder || filepath.Dir(name) == volumesFolder
	},
	keepsOwner: func(string) bool { return true }, // each service reads its own secrets and volumes
	needs:      secretsFolder + "/credentials.json",
	missing:    "it holds no secrets",
}

// VerifyContainers reads a backup of containers to its end, and checks every digest.
func VerifyContainers(ctx context.Context, in io.Reader) (Result, error) {
	return readContainers(ctx, in, "", containersLayout)
}

// RestoreContainers fills the empty folders and volumes that are mounted below dir from a backup of containers. If it
// is refused, they are empty again.
func RestoreContainers(ctx context.Context, in io.Reader, dir string) (_ Result, err error) {
	volumes, err := listVolumes(dir)
	if err != nil {
		return Result{}, err
	}
	folders := []string{filepath.Join(dir, secretsFolder)}
	for _, name := range volumes {
		folders = append(folders, filepath.Join(dir, volumesFolder, name))
	}
	for _, folder := range folders {
		if entries, err := os.ReadDir(folder); err != nil {
			return Result{}, fmt.Errorf("nothing is mounted for it: %w", err)
		} else if len(entries) > 0 {
			return Result{}, fmt.Errorf("%s is not empty: a backup is restored into an installation without volumes and secrets", filepath.Base(folder))
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, emptyFolders(folders))
		}
	}()
	of := containersLayout
	of.check = func(a About) error {
		if err := containersLayout.check(a); err != nil {
			return err
		}
		for _, name := range a.Volumes {
			if !slices.Contains(volumes, name) {
				return fmt.Errorf("it is of the volume %s, which is not mounted", name)
			}
		}
		return nil
	}
	r, err := readContainers(ctx, in, dir, of)
	if err != nil {
		return Result{}, err
	}
	return r, syncFolders(dir)
}

// readContainers reads a backup to the folder next, or only reads it if that is empty.
func readContainers(ctx context.Context, in io.Reader, next string, of layout) (Result, error) {
	r, err := newReader(interruptible{ctx, in}, next, of)
	if err != nil {
		return Result{}, err
	}
	defer r.close()
	if err := r.read(); err != nil {
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		return Result{}, fmt.Errorf("the backup is refused: %w", err)
	}
	return r.result, nil
}

// emptyFolders removes the content of the folders, which are themselves mount points.
func emptyFolders(folders []string) (err error) {
	for _, folder := range folders {
		entries, readErr := os.ReadDir(folder)
		if errors.Is(readErr, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, readErr)
		for _, e := range entries {
			err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
		}
	}
	return err
}
