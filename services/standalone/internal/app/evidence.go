package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/service"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
)

// evidenceStore is the path of the evidence API's one SQLite file.
func (p *platform) evidenceStore() string { return p.path("evidence", "store.sqlite") }

// ensureEvidence migrates the store; one that is not there or holds no run gets the samples. A new one is made
// beside its place and moved there whole, so a killed first start leaves no half-filled store.
func (p *platform) ensureEvidence(ctx context.Context) (made bool, err error) {
	path := p.evidenceStore()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, fmt.Errorf("make the evidence store's folder: %w", err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		part := path + ".part"
		for _, left := range []string{part, part + "-journal"} { // of a killed start
			if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, fmt.Errorf("make the evidence store: %w", err)
			}
		}
		if _, err := seedEvidence(ctx, part); err != nil {
			return false, err
		}
		if err := os.Rename(part, path); err != nil {
			return false, fmt.Errorf("make the evidence store: %w", err)
		}
		return true, nil
	}
	return seedEvidence(ctx, path)
}

// seedEvidence opens the store, which migrates it, and fills it if it holds no run.
func seedEvidence(ctx context.Context, path string) (made bool, err error) {
	o := store.WriterOptions{Now: time.Now}
	if err := store.Create(ctx, path, o); err != nil {
		return false, fmt.Errorf("make the evidence store: %w", err)
	}
	w, err := store.OpenWriter(ctx, path, o)
	if err != nil {
		return false, fmt.Errorf("open the evidence store: %w", err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	r := store.NewReader(path, store.CommandWait)
	defer r.Close()
	sequence, err := r.LatestSequence(ctx)
	if err != nil || sequence > 0 {
		return false, err
	}
	if err := store.Seed(ctx, w); err != nil {
		return false, fmt.Errorf("fill the evidence store with the samples: %w", err)
	}
	return true, nil
}

// tower holds what the evidence API reported when it began to listen.
type tower struct {
	at atomic.Pointer[evidenceapi.Tower]
}

// towerLaunch is an address that opens the evidence page once with the token in it.
func (p *platform) towerLaunch() string {
	if t := p.tower.at.Load(); t != nil {
		return t.Launch()
	}
	return p.cfg.evidenceURL()
}

func (p *platform) evidenceConfig() (evidenceapi.Config, error) {
	cfg, err := evidenceapi.LoadConfig(p.environ(nil, map[string]string{
		"SVC_CONTROL_TOWER_TOKEN": p.creds.EvidenceToken,
		"SVC_PRODUCT_SPINE_STORE": p.evidenceStore(),
	}))
	cfg.Version = service.Version
	cfg.Started = func(t evidenceapi.Tower) { p.tower.at.Store(&t) }
	return cfg, err
}
