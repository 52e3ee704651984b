package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/mlp-platform/platform/services/standalone/internal/backup"
	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
)

// Backup writes the data directory of the stopped platform to the file.
func Backup(ctx context.Context, cfg Config, file string, w io.Writer) error {
	if cfg.DatabaseURL != "" {
		return errors.New("the database named by PLATFORM_DATABASE_URL is not in the data directory: back it up with pg_dump, and the rest without that variable")
	}
	begin := time.Now()
	r, err := backup.Write(ctx, cfg.DataDir, file, begin)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if err := datadir.WriteBackup(cfg.DataDir, datadir.Backup{File: path, At: begin.UTC().Truncate(time.Second)}); err != nil {
		return fmt.Errorf("%s is complete, but its time was not recorded: %w", file, err)
	}
	_, err = fmt.Fprintf(w, "%s: %d files, %s in %s, %s. It holds every secret of the platform: keep it as you keep those.\n",
		file, r.Files, megabytes(r.Bytes), megabytes(info.Size()), time.Since(begin).Round(100*time.Millisecond))
	return err
}

// Restore makes the empty data directory of the backup in the file.
func Restore(ctx context.Context, cfg Config, file string, w io.Writer) error {
	r, err := backup.Restore(ctx, file, cfg.DataDir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s: %d files, %s, all digests right; made by version %s at %s. Start the platform to continue from there.\n",
		cfg.DataDir, r.Files, megabytes(r.Bytes), r.About.Version, r.About.MadeAt.Format(time.RFC3339))
	return err
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
