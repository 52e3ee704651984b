package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
	"github.com/mlp-platform/platform/services/control-plane/internal/identity"
	"github.com/mlp-platform/platform/services/control-plane/internal/poller"
	"github.com/mlp-platform/platform/services/control-plane/internal/repoconfig"
	"github.com/mlp-platform/platform/services/control-plane/internal/webhook"
)

// firstSettings returns the model repository's settings at the first start.
func (c *Config) firstSettings() (repoconfig.Settings, error) {
	return repoconfig.CheckFirst(c.AutoRetrain, c.PollSeconds, c.WatchBranch)
}

// shortSecret is the length in bytes below which a secret causes a warning.
const shortSecret = 16

// checkModelrepo reports each error in the settings of the model repository.
func (c *Config) checkModelrepo(fault func(format string, a ...any)) {
	if _, err := c.firstSettings(); err != nil {
		fault("%w", err)
	}
	for name, s := range map[string]service.Secret{
		"MODELREPO_WEBHOOK_SECRET": c.WebhookSecret, "MODELREPO_WEBHOOK_SIGNING_TOKEN": c.WebhookSigningToken,
		"AI_PROD_PIPELINE_TRIGGER_TOKEN": c.CITriggerToken,
	} {
		if err := service.CheckSecret(name, s); err != nil {
			fault("%w", err)
		}
	}
	if _, err := identity.Parse(c.Identities); err != nil {
		fault("MODELREPO_IDENTITIES_JSON: %w", err)
	}
	if _, err := webhook.SigningKey(c.WebhookSigningToken); err != nil {
		fault("MODELREPO_WEBHOOK_SIGNING_TOKEN %w", err)
	}
	if (c.CIProject == "") != (c.CITriggerToken == "") {
		fault("AI_PROD_GITLAB_PROJECT_ID and AI_PROD_PIPELINE_TRIGGER_TOKEN go together: set both or neither")
	}
}

// secretWarnings returns the warnings of the check "token" about the webhook secrets.
func (c *Config) secretWarnings() []string {
	var out []string
	warn := func(name string, n int) {
		if n > 0 && n < shortSecret {
			out = append(out, fmt.Sprintf("%s is shorter than %d bytes", name, shortSecret))
		}
	}
	warn("MODELREPO_WEBHOOK_SECRET", len(c.WebhookSecret))
	key, _ := webhook.SigningKey(c.WebhookSigningToken) // checked at the start
	warn("the key in MODELREPO_WEBHOOK_SIGNING_TOKEN", len(key))
	return out
}

// modelrepoSource returns the first configured source of the repository and an id that
// distinguishes it from others; nil if it is not under git.
func (c *Config) modelrepoSource() (forge.Source, string, error) {
	switch {
	case c.GitLabProject != "":
		return forge.OpenGitLab(c.GitLabURL, c.GitLabProject, c.GitLabToken, poller.Timeout), "gitlab:" + shortDigest(c.GitLabURL+"\n"+c.GitLabProject), nil
	case c.GitURL != "":
		dir := c.ModelRepoCacheDir
		if dir == "" {
			var err error
			if dir, err = defaultCacheDir(); err != nil {
				return nil, "", err
			}
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

// checksOut reports whether each replica keeps its own checkout that follows the repository.
func (c *Config) checksOut() bool { return c.GitLabProject == "" && c.GitURL != "" }

func shortDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// defaultCacheDir is below the user's cache folder, never below the shared temporary
// folder: there, others could make the folder first and put their own models into it.
func defaultCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("MODELREPO_CACHE_DIR is not set, and there is no cache folder of this user: %w", err)
	}
	return filepath.Join(dir, "mlp-platform", "modelrepo"), nil
}

// checkSource reports each error in the location of the model repository.
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
