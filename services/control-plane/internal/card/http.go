package card

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// maxPage bounds the text on one page of the list, in bytes; the first card is
// always on it.
const maxPage = 4 << 20

// Get serves GET /model-cards/{model}.
func (s *Service) Get(c echo.Context) error {
	ctx := c.Request().Context()
	p, _ := auth.FromContext(ctx)
	id := registry.ID(c.Param("model"))
	row, err := s.Store.GetModelCard(ctx, store.GetModelCardParams{Tenant: p.Tenant, ModelID: id})
	if err == nil {
		return c.JSON(http.StatusOK, written(row))
	}
	if !store.None(err) {
		return err
	}
	if text, ok := s.Readme(ctx, id); ok {
		return c.JSON(http.StatusOK, readme(id, text))
	}
	if err := s.Registry.RequireKnown(ctx, s.Store.Queries, p.Tenant, id); err != nil {
		return err
	}
	return fault.CardNotFound.New(fmt.Sprintf("Model %s has neither a card nor a README of at most %d bytes; PUT /model-cards/%s writes a card.", id, MaxMarkdown, id))
}

// Put serves PUT /model-cards/{model}.
func (s *Service) Put(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.ModelCardInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	row, err := check(registry.ID(c.Param("model")), body)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	if err := s.Registry.RequireKnown(ctx, s.Store.Queries, p.Tenant, row.ModelID); err != nil {
		return err
	}
	after, err := s.put(ctx, p, row)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, written(after))
}

func check(id string, b api.ModelCardInput) (store.PutModelCardParams, error) {
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

// List serves GET /model-cards.
func (s *Service) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[string](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	cards, out, err := s.index(ctx, p.Tenant)
	if err != nil {
		return err
	}
	ids := slices.Sorted(maps.Keys(cards))
	from, found := slices.BinarySearch(ids, page.Start())
	if found {
		from++
	}
	ids = ids[from:]
	n, size := 0, 0
	for n < len(ids) && n < page.Limit() && (n == 0 || size+cards[ids[n]].size <= maxPage) {
		size += cards[ids[n]].size
		n++
	}
	if n < len(ids) {
		out.NextCursor = page.Next(ids[n-1])
	}
	if out.Items, err = s.read(ctx, p.Tenant, ids[:n], cards); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// entry is a card whose text has not been read, or a README.
type entry struct {
	written bool
	size    int // of the text, in bytes
}

// index finds which models have a card, and of how many.
func (s *Service) index(ctx context.Context, tenant string) (map[string]entry, api.ModelCardList, error) {
	var cover api.ModelCardList
	rows, err := s.Store.ModelCardIndex(ctx, tenant)
	if err != nil {
		return nil, cover, err
	}
	hosted, err := s.Store.HostedModels(ctx, tenant)
	if err != nil {
		return nil, cover, err
	}
	cards := map[string]entry{}
	for _, r := range rows {
		cards[r.ModelID] = entry{written: true, size: int(r.Size)}
	}
	models := map[string]bool{}
	for _, id := range hosted {
		models[id] = true
	}
	for _, m := range s.Registry.Models() {
		models[m.ID()] = true
		if _, ok := cards[m.ID()]; ok {
			continue
		}
		if text, ok := s.Readme(ctx, m.ID()); ok {
			cards[m.ID()] = entry{size: len(text)}
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

func (s *Service) read(ctx context.Context, tenant string, ids []string, cards map[string]entry) ([]api.ModelCard, error) {
	var stored []string
	for _, id := range ids {
		if cards[id].written {
			stored = append(stored, id)
		}
	}
	rows, err := s.Store.ModelCardsOf(ctx, store.ModelCardsOfParams{Tenant: tenant, ModelIds: stored})
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
			out = append(out, written(r))
		} else if text, ok := s.Readme(ctx, id); ok { // else it went between the two looks
			out = append(out, readme(id, text))
		}
	}
	return out, nil
}
