package app

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/diff"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
	"github.com/mlp-platform/platform/services/control-plane/internal/lock"
	"github.com/mlp-platform/platform/services/control-plane/internal/poller"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// wirePoller makes what reads the model repository where it lives.
func (p *parts) wirePoller(db *store.Store, server *service.Server, coordinator coord.Coordinator, locks *lock.Locker, log *slog.Logger) error {
	source, id, err := p.cfg.modelrepoSource()
	if err != nil {
		return err
	}
	if e, ok := source.(forge.Exporter); ok {
		server.OnClose(func() {
			if err := e.Close(); err != nil {
				log.Warn("cache of the model repository not given back", slog.Any("err", err))
			}
		})
	}
	p.poller = poller.New(poller.Parts{
		Source: source, SourceID: id, Store: db, Registry: p.registry, Config: p.repoConfig, Push: p.pushes,
		Coord: coordinator, Locks: locks, Log: log,
	})
	p.diffs = diff.API{Store: db, Source: source, Config: p.repoConfig, Log: log}
	return nil
}

// modelrepoSource is where the repository lives, the first that is configured,
// and what tells it from others; nil if it is in no git repository.
func (c *Config) modelrepoSource() (forge.Source, string, error) {
	switch {
	case c.GitLabProject != "":
		return forge.OpenGitLab(c.GitLabURL, c.GitLabProject, c.GitLabToken, poller.Timeout), "gitlab:" + shortDigest(c.GitLabURL+"\n"+c.GitLabProject), nil
	case c.GitURL != "":
		dir := c.ModelRepoCacheDir
		if dir == "" {
			dir = defaultCacheDir()
		}
		r, err := forge.OpenRemote(c.GitURL, dir, poller.CloneTimeout)
		if err != nil {
			return nil, "", err
		}
		return r, "git:" + r.ID(), nil
	}
	if l, ok := forge.OpenLocal(c.ModelRepoDir); ok {
		return l, "local", nil
	}
	return nil, "", nil
}

// checksOut says whether each replica has a checkout of its own that follows the repository.
func (c *Config) checksOut() bool { return c.GitLabProject == "" && c.GitURL != "" }

func shortDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// defaultCacheDir is the user's cache folder, or the machine's for temporary
// files where a service's user has no home.
func defaultCacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "mlp-platform", "modelrepo")
}

// checkSource tells each fault of where the model repository lives.
func (c *Config) checkSource(fault func(format string, a ...any)) {
	if err := service.CheckSecret("GITLAB_TOKEN", c.GitLabToken); err != nil {
		fault("%w", err)
	}
	used := c.GitLabProject != "" || c.CIProject != ""
	if u, err := url.Parse(c.GitLabURL); used && (err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil) {
		fault("GITLAB_URL must be the http or https URL, without credentials, of the server that GITLAB_PROJECT_ID and AI_PROD_GITLAB_PROJECT_ID live on")
	}
	if c.GitURL != "" {
		if _, err := forge.OpenRemote(c.GitURL, "", 0); err != nil {
			fault("%w", err)
		}
	}
}
