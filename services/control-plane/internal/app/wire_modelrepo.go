package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/metrics"
	"github.com/mlp-platform/platform/services/control-plane/internal/push"
	"github.com/mlp-platform/platform/services/control-plane/internal/repoconfig"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/webhook"
)

// wirePushes makes the parts that hear of new heads of the model repository.
func (p *parts) wirePushes(db *store.Store, counted *metrics.Metrics, hc *http.Client, log *slog.Logger) error {
	first, err := p.cfg.firstSettings()
	if err != nil {
		return err
	}
	key, err := webhook.SigningKey(p.cfg.WebhookSigningToken)
	if err != nil {
		return err
	}
	p.repoConfig = repoconfig.New(db, first, time.Now, log)
	pushes := push.Parts{
		Store: db, Config: p.repoConfig, Registry: p.registry, Approvals: p.approvals.Service, Retrain: p.retrain, Now: time.Now, Log: log,
		OnHead: func() { p.poller.OnHead() }, // the poller records pushes too, so it is made after them
	}
	if p.cfg.CIProject != "" {
		pushes.Pipeline = &push.Pipeline{URL: p.cfg.GitLabURL, Project: p.cfg.CIProject, Token: p.cfg.CITriggerToken, HTTP: hc}
	}
	if p.pushes, err = push.New(pushes); err != nil {
		return err
	}
	p.webhooks = webhook.New(p.pushes, p.cfg.WebhookSecret, key, counted.Webhook, time.Now)
	return nil
}

// firstSettings are those of the model repository at the first start.
func (c *Config) firstSettings() (repoconfig.Settings, error) {
	return repoconfig.CheckFirst(c.AutoRetrain, c.PollSeconds, c.WatchBranch)
}

// shortSecret is below what a generated secret has, in bytes.
const shortSecret = 16

// checkModelrepo tells each fault of what concerns the model repository.
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
	if _, err := webhook.SigningKey(c.WebhookSigningToken); err != nil {
		fault("MODELREPO_WEBHOOK_SIGNING_TOKEN %w", err)
	}
	if (c.CIProject == "") != (c.CITriggerToken == "") {
		fault("AI_PROD_GITLAB_PROJECT_ID and AI_PROD_PIPELINE_TRIGGER_TOKEN go together: set both or neither")
	}
}

// secretWarnings are what the check "token" says of the webhook secrets.
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
