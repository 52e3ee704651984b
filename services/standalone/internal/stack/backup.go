package stack

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mlp-platform/platform/services/standalone/internal/backup"
)

// Backup writes the secrets and volumes that are mounted below dir to out, and their size to talk.
func Backup(ctx context.Context, dir string, out, talk io.Writer) error {
	r, err := backup.WriteContainers(ctx, dir, out, time.Now())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(talk, "%d volumes, %d files, %.1f MB. The backup holds every secret of the platform: keep it as you keep those.\n",
		len(r.About.Volumes), r.Files, float64(r.Bytes)/1e6)
	return err
}

// VerifyBackup checks a backup and writes the names of its volumes to names, a line each.
func VerifyBackup(ctx context.Context, in io.Reader, names, talk io.Writer) error {
	r, err := backup.VerifyContainers(ctx, in)
	if err != nil {
		return err
	}
	for _, name := range r.About.Volumes {
		if _, err := fmt.Fprintln(names, name); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(talk, "%d files, %.1f MB, all digests right; made by version %s at %s\n",
		r.Files, float64(r.Bytes)/1e6, r.About.Version, r.About.MadeAt.Format(time.RFC3339))
	return err
}

// RestoreBackup fills the secrets and volumes that are mounted below dir, which are empty.
func RestoreBackup(ctx context.Context, in io.Reader, dir string, talk io.Writer) error {
	r, err := backup.RestoreContainers(ctx, in, dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(talk, "restored %d volumes, %d files\n", len(r.About.Volumes), r.Files)
	return err
}
