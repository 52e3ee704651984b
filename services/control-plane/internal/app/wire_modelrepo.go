package app

import (
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/diff"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/identity"
	"github.com/mlp-platform/platform/services/control-plane/internal/poller"
	"github.com/mlp-platform/platform/services/control-plane/internal/push"
	"github.com/mlp-platform/platform/services/control-plane/internal/repoconfig"
	"github.com/mlp-platform/platform/services/control-plane/internal/webhook"
)

// connectPushes builds the recorder of new heads of the model repository.
func (p *parts) connectPushes() error {
	first, err := p.cfg.firstSettings()
	if err != nil {
		return err
	}
	key, err := webhook.SigningKey(p.cfg.WebhookSigningToken)
	if err != nil {
		return err
	}
	p.repoConfig = repoconfig.New(p.store, first, p.guarded, time.Now, p.log)
	pushes := push.Parts{
		Store: p.store, Config: p.repoConfig, Registry: p.registry, Approvals: p.approvals.Service, Retrain: p.retrain, Now: time.Now, Log: p.log, People: p.people,
		OnHead: func() { p.poller.OnHead() }, // the poller also records pushes, so it is built after them
	}
	pushes.Keep = time.Duration(p.cfg.PushRetentionDays) * 24 * time.Hour
	if p.cfg.CIProject != "" {
		pushes.Pipeline = &push.Pipeline{URL: p.cfg.GitLabURL, Project: p.cfg.CIProject, Token: p.cfg.CITriggerToken, HTTP: p.http}
	}
	if p.pushes, err = push.New(pushes); err != nil {
		return err
	}
	p.webhooks = webhook.New(p.pushes, p.cfg.WebhookSecret, key, p.metrics.Webhook, time.Now)
	return nil
}

// people returns the mapping of forge accounts in force.
func (p *parts) people() identity.Map {
	var text map[string]string
	p.guarded.Read(guarded.Identities, &text)
	return identity.FromMap(text)
}

// connectPoller builds the poller of the model repository.
func (p *parts) connectPoller() error {
	source, id, err := p.cfg.modelrepoSource()
	if err != nil {
		return err
	}
	if e, ok := source.(forge.Exporter); ok {
		p.server.OnClose(func() {
			if err := e.Close(); err != nil {
				p.log.Warn("cache of the model repository not released", slog.Any("err", err))
			}
		})
	}
	p.poller = poller.New(poller.Parts{
		Source: source, SourceID: id, Store: p.store, Registry: p.registry, Config: p.repoConfig, Push: p.pushes,
		Coord: p.coordinator, Locks: p.locks, Log: p.log,
	})
	p.diffs = diff.API{Store: p.store, Source: source, Config: p.repoConfig, Log: p.log}
	return nil
}
