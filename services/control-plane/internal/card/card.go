// Package card keeps model cards: what people should know of a model before they
// use it. A model without a written card has its README in the model repository,
// with source "repository".
package card

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// MaxMarkdown bounds a card, in bytes. A longer README is no card.
const MaxMarkdown = 256 << 10

// The sources that are not a writer's own word.
const (
	fromAPI        = "api"
	fromRepository = "repository"
)

// Service keeps the cards. They belong to the tenant that wrote them; those of
// tenant platform are everybody's, where they have none of their own.
type Service struct {
	Store    *store.Store
	Registry *registry.Registry
	Log      *slog.Logger
	Now      func() time.Time
}

// Readme is the model's README, if it can be a card.
func (s *Service) Readme(ctx context.Context, id string) (string, bool) {
	repo := s.Registry.Repo() // the model and its file are of one reading
	m, ok := repo.Model(id)
	if !ok {
		return "", false
	}
	raw, _, err := repo.Readme(m)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.Log.WarnContext(ctx, "README unreadable", slog.String("model", id), slog.Any("err", err))
		}
		return "", false
	}
	if len(raw) > MaxMarkdown {
		return "", false
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	return text, strings.TrimSpace(text) != ""
}

// put writes the tenant's card of a model.
func (s *Service) put(ctx context.Context, p auth.Principal, row store.PutModelCardParams) (after store.ModelCard, err error) {
	row.Tenant, row.Now, row.UpdatedBy = p.Tenant, s.Now(), p.Name
	err = s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		var details map[string]any
		if after, details, err = store.Replace(ctx, tx, store.Record[store.ModelCard]{
			Key: "card:" + p.Tenant + ":" + row.ModelID,
			Get: func() (store.ModelCard, error) {
				return tx.GetOwnModelCard(ctx, store.GetOwnModelCardParams{Tenant: p.Tenant, ModelID: row.ModelID})
			},
			Put:  func() (store.ModelCard, error) { return tx.PutModelCard(ctx, row) },
			Told: facts,
		}); err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "model_card.set", event.Model(row.ModelID), event.OK, details))
	})
	return after, err
}

// facts bind the text by its digest: two of them would not fit into an event.
func facts(r store.ModelCard) any {
	sum := sha256.Sum256([]byte(r.Markdown))
	return map[string]any{"version": r.Version, "source": r.Source, "bytes": len(r.Markdown), "sha256": hex.EncodeToString(sum[:])}
}

func written(r store.ModelCard) api.ModelCard {
	at := r.UpdatedAt.UTC()
	return api.ModelCard{
		Tenant: &r.Tenant, Model: r.ModelID, Version: r.Version, Markdown: r.Markdown, Source: r.Source, UpdatedAt: &at, UpdatedBy: &r.UpdatedBy,
	}
}

func readme(id, text string) api.ModelCard {
	return api.ModelCard{Model: id, Markdown: text, Source: fromRepository}
}
