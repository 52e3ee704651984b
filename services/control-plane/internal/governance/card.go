package governance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// MaxMarkdown limits a card, in bytes. A longer README does not count as a card.
const MaxMarkdown = 256 << 10

// The sources of a card or README not written through the API.
const (
	fromAPI        = "api"
	fromRepository = "repository"
)

// Cards stores the cards. A card belongs to the tenant that wrote it; cards of tenant platform apply to every tenant
// without its own.
type Cards struct {
	store    *store.Store
	registry *registry.Registry
	log      *slog.Logger
	now      func() time.Time
}

// Readme returns the model's README, if it can serve as a card.
func (s *Cards) Readme(ctx context.Context, id string) (string, bool) {
	repo := s.registry.Repo() // the model and its file are of one reading
	m, ok := repo.Model(id)
	if !ok {
		return "", false
	}
	raw, _, err := repo.Readme(m)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.log.WarnContext(ctx, "README unreadable", slog.String("model", id), slog.Any("err", err))
		}
		return "", false
	}
	if len(raw) > MaxMarkdown {
		return "", false
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	return text, strings.TrimSpace(text) != ""
}

// putCard writes the tenant's card of a model.
func (s *Cards) putCard(ctx context.Context, p auth.Principal, row store.PutModelCardParams) (after store.ModelCard, err error) {
	row.Tenant, row.Now, row.UpdatedBy = p.Tenant, s.now(), p.Name
	err = s.store.InTx(ctx, func(tx store.Tx) (err error) {
		var details map[string]any
		if after, details, err = store.Replace(ctx, tx, store.Record[store.ModelCard]{
			Key: "card:" + p.Tenant + ":" + row.ModelID,
			Get: func() (store.ModelCard, error) {
				return tx.GetOwnModelCard(ctx, store.GetOwnModelCardParams{Tenant: p.Tenant, ModelID: row.ModelID})
			},
			Put:  func() (store.ModelCard, error) { return tx.PutModelCard(ctx, row) },
			Told: auditCardFacts,
		}); err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "model_card.set", event.Model(row.ModelID), event.OK, details))
	})
	return after, err
}

// auditCardFacts identify the text by its digest: two texts would not fit into an event.
func auditCardFacts(r store.ModelCard) any {
	sum := sha256.Sum256([]byte(r.Markdown))
	return map[string]any{"version": r.Version, "source": r.Source, "bytes": len(r.Markdown), "sha256": hex.EncodeToString(sum[:])}
}

func viewWrittenCard(r store.ModelCard) api.ModelCard {
	at := r.UpdatedAt.UTC()
	return api.ModelCard{
		Tenant: &r.Tenant, Model: r.ModelID, Version: r.Version, Markdown: r.Markdown, Source: r.Source, UpdatedAt: &at, UpdatedBy: &r.UpdatedBy,
	}
}

func viewReadmeCard(id, text string) api.ModelCard {
	return api.ModelCard{Model: id, Markdown: text, Source: fromRepository}
}

func checkCardInput(id string, b api.ModelCardInput) (store.PutModelCardParams, error) {
	var faults []problem.Field
	bad := func(msg, name string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	out := store.PutModelCardParams{ModelID: id, Version: b.Version, Markdown: b.Markdown, Source: fromAPI}
	if b.Model != nil && registry.ID(*b.Model) != id {
		bad("is not the model of the path", "model")
	}
	if b.Version != nil && !wire.Label(*b.Version) {
		bad(wire.LabelRule, "version")
	}
	switch {
	case strings.TrimSpace(b.Markdown) == "":
		bad("must hold text", "markdown")
	case len(b.Markdown) > MaxMarkdown:
		bad(fmt.Sprintf("is %d bytes long; at most %d", len(b.Markdown), MaxMarkdown), "markdown")
	}
	if b.Source != nil {
		switch out.Source = *b.Source; {
		case !wire.Label(out.Source):
			bad(wire.LabelRule, "source")
		case out.Source == fromRepository:
			bad("repository is the source of READMEs alone", "source")
		}
	}
	return out, fault.InvalidAll(faults)
}

// cardEntry is a card whose text was not read, or a README.
type cardEntry struct {
	written bool
	size    int // of the text, in bytes
}

// indexCards finds the models with a card, and the size of each.
func (s *Cards) indexCards(ctx context.Context, tenant string) (map[string]cardEntry, api.ModelCardList, error) {
	var cover api.ModelCardList
	rows, err := s.store.ModelCardIndex(ctx, tenant)
	if err != nil {
		return nil, cover, err
	}
	hosted, err := s.store.HostedModels(ctx, tenant)
	if err != nil {
		return nil, cover, err
	}
	cards := map[string]cardEntry{}
	for _, r := range rows {
		cards[r.ModelID] = cardEntry{written: true, size: int(r.Size)}
	}
	models := map[string]bool{}
	for _, id := range hosted {
		models[id] = true
	}
	for _, m := range s.registry.Models() {
		models[m.ID()] = true
		if _, ok := cards[m.ID()]; ok {
			continue
		}
		if text, ok := s.Readme(ctx, m.ID()); ok {
			cards[m.ID()] = cardEntry{size: len(text)}
		}
	}
	for id := range models {
		if _, ok := cards[id]; ok {
			cover.WithCard++
		}
	}
	cover.Total = len(models)
	cover.WithoutCard = cover.Total - cover.WithCard
	if cover.Total > 0 {
		cover.Coverage = float64(cover.WithCard) / float64(cover.Total)
	}
	return cards, cover, nil
}

func (s *Cards) readCards(ctx context.Context, tenant string, ids []string, cards map[string]cardEntry) ([]api.ModelCard, error) {
	var stored []string
	for _, id := range ids {
		if cards[id].written {
			stored = append(stored, id)
		}
	}
	rows, err := s.store.ModelCardsOf(ctx, store.ModelCardsOfParams{Tenant: tenant, ModelIds: stored})
	if err != nil {
		return nil, err
	}
	byID := map[string]store.ModelCard{}
	for _, r := range rows {
		byID[r.ModelID] = r
	}
	out := make([]api.ModelCard, 0, len(ids))
	for _, id := range ids {
		if r, ok := byID[id]; ok {
			out = append(out, viewWrittenCard(r))
		} else if text, ok := s.Readme(ctx, id); ok { // otherwise it disappeared between the two reads
			out = append(out, viewReadmeCard(id, text))
		}
	}
	return out, nil
}
