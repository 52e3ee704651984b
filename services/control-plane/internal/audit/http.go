package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Limits of a fact recorded by another program, in bytes.
const (
	maxTarget  = 512
	maxDetails = 16 << 10
)

// maxSearch limits the text of a search, in characters.
const maxSearch = 200

// maxDepth limits the nesting of objects and lists in a fact's details.
const maxDepth = 32

// action matches the allowed names of an action.
var action = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._:-]{0,127}$`)

// API serves the routes under /audit.
type API struct {
	Ledger *Ledger
	Guard  *guarded.Service // keeps acknowledgements until a second person approves
}

// tenantOf returns the requested chain: the caller's own, or the platform's. Others look absent.
func tenantOf(c echo.Context) (string, error) {
	p, _ := auth.FromContext(c.Request().Context())
	switch t := c.QueryParam("tenant"); t {
	case "", p.Tenant:
		return p.Tenant, nil
	case event.PlatformTenant:
		return t, nil
	}
	return "", fault.TenantNotFound.New("tenant must be your own, which is the default, or " + event.PlatformTenant + ".")
}

type position struct {
	Before int64 `json:"before"`
}

// List serves GET /audit/events.
func (a API) List(c echo.Context) error {
	ctx := c.Request().Context()
	tenant, err := tenantOf(c)
	if err != nil {
		return err
	}
	since, until, err := parseTimeRange(c)
	if err != nil {
		return err
	}
	limit, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	words := c.QueryParam("q")
	if utf8.RuneCountInString(words) > maxSearch {
		return fault.Invalid("must have at most "+strconv.Itoa(maxSearch)+" characters", "query", "q")
	}
	q := store.ListAuditEventsParams{
		Tenant: tenant, Action: wire.OptionalText(c.QueryParam("action")), Source: wire.OptionalText(c.QueryParam("source")),
		Actor: wire.OptionalText(c.QueryParam("actor")), Since: since, Until: until, MaxRows: int32(limit) + 1,
	}
	if m := c.QueryParam("model"); m != "" {
		q.Model = wire.OptionalText(registry.ID(m))
	}
	var at position
	if ok, err := service.Cursor(c, &at); err != nil {
		return err
	} else if ok {
		q.Before = &at.Before
	}
	rows, count, err := a.read(ctx, words, q)
	if err != nil {
		return err
	}
	out := api.AuditEventList{Items: make([]api.AuditEvent, 0, len(rows)), Count: count}
	if len(rows) > limit {
		rows = rows[:limit]
		out.NextCursor = wire.OptionalText(service.EncodeCursor(c.Path(), position{rows[limit-1].Seq}))
	}
	for _, r := range rows {
		l := linkOf(r)
		out.Items = append(out.Items, api.AuditEvent{
			V: l.V, Tenant: l.Tenant, Seq: l.Seq, EventId: l.EventID, Ts: l.TS, Source: l.Source, Actor: l.Actor, Action: l.Action,
			Target: l.Target, Outcome: api.AuditOutcome(l.Outcome), RequestId: l.RequestID, Details: l.Details, PrevHash: l.PrevHash, Hash: l.Hash,
		})
	}
	return c.JSON(http.StatusOK, out)
}

// read returns a page and the number of matches on all pages. Without words there is nothing to search for.
func (a API) read(ctx context.Context, words string, q store.ListAuditEventsParams) (rows []store.AuditEvent, count int64, err error) {
	if words == "" {
		if rows, err = a.Ledger.Store.ListAuditEvents(ctx, q); err != nil {
			return nil, 0, err
		}
		count, err = a.Ledger.Store.CountAuditEvents(ctx, store.CountAuditEventsParams{
			Tenant: q.Tenant, Model: q.Model, Action: q.Action, Source: q.Source, Actor: q.Actor, Since: q.Since, Until: q.Until,
		})
		return rows, count, err
	}
	if rows, err = a.Ledger.Store.SearchAuditEvents(ctx, store.SearchAuditEventsParams{
		Tenant: q.Tenant, Words: words, Model: q.Model, Action: q.Action, Source: q.Source, Actor: q.Actor, Since: q.Since, Until: q.Until,
		Before: q.Before, MaxRows: q.MaxRows,
	}); err != nil {
		return nil, 0, err
	}
	count, err = a.Ledger.Store.CountFoundAuditEvents(ctx, store.CountFoundAuditEventsParams{
		Tenant: q.Tenant, Words: words, Model: q.Model, Action: q.Action, Source: q.Source, Actor: q.Actor, Since: q.Since, Until: q.Until,
	})
	return rows, count, err
}

// parseTimeRange reads since and until.
func parseTimeRange(c echo.Context) (since, until *time.Time, err error) {
	var out [2]*time.Time
	for i, name := range []string{"since", "until"} {
		v := c.QueryParam(name)
		if v == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return nil, nil, fault.Invalid("must be a time of RFC 3339, such as 2026-01-02T03:04:05Z", "query", name)
		}
		out[i] = &t
	}
	return out[0], out[1], nil
}

// Post serves POST /audit/events: the fact is written to the outbox as all facts are.
func (a API) Post(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.AuditFactInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	f := outbox.AuditFact{Tenant: p.Tenant, Actor: p.Name, Action: body.Action, Target: body.Target, Source: string(body.Source), Outcome: event.OK, Time: a.Ledger.Now()}
	var faults []problem.Field
	bad := func(msg, name string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	if !body.Source.Valid() {
		bad("must be cli, bridge, agent or dashboard", "source")
	}
	if !action.MatchString(body.Action) {
		bad("must be 1 to 128 of the characters A-Z a-z 0-9 . _ : -, and begin with a letter", "action")
	}
	if !isPrintableTarget(body.Target) {
		bad("must be 1 to "+strconv.Itoa(maxTarget)+" bytes of printable text", "target")
	}
	if body.Outcome != nil {
		if f.Outcome = string(*body.Outcome); !body.Outcome.Valid() {
			bad("must be ok, denied or failed", "outcome")
		}
	}
	if body.Details != nil {
		var why string
		if f.Details, why = detailsOf(*body.Details); why != "" {
			bad(why, "details")
		}
	}
	if err := fault.InvalidAll(faults); err != nil {
		return err
	}
	e := outbox.Audit(f)
	if err := a.Ledger.Store.InTx(ctx, func(tx store.Tx) error { return tx.Emit(ctx, e) }); err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, api.AuditFactAccepted{EventId: e.ID})
}

// isPrintableTarget keeps line feeds, bidirectional control characters and other unprintable ones out of what people
// read in the ledger.
func isPrintableTarget(s string) bool {
	return s != "" && len(s) <= maxTarget && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// detailsOf parses an object without loss; why describes what is wrong with it. Details without a canonical form could
// never become an entry.
func detailsOf(raw json.RawMessage) (details map[string]any, why string) {
	if len(raw) > maxDetails {
		return nil, "must be at most " + strconv.Itoa(maxDetails) + " bytes"
	}
	if _, err := chain.Object(raw); err != nil {
		return nil, "must be a JSON object that RFC 8785 can express: " + err.Error()
	}
	if nestedDeeperThan(raw, maxDepth) {
		return nil, "must not have more than " + strconv.Itoa(maxDepth) + " objects and lists in each other"
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&details); err != nil {
		return nil, "must be a JSON object"
	}
	return details, ""
}

// nestedDeeperThan reports whether objects and lists of a valid JSON text are nested more than n deep.
func nestedDeeperThan(raw []byte, n int) bool {
	depth := 0
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		t, err := d.Token()
		if err != nil {
			return false
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > n {
				return true
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

// Verify serves GET /audit/verify.
func (a API) Verify(c echo.Context) error {
	ctx := c.Request().Context()
	tenant, err := tenantOf(c)
	if err != nil {
		return err
	}
	var seq [2]int64
	for i, name := range []string{"from", "to"} {
		v := c.QueryParam(name)
		if v == "" {
			continue
		}
		if seq[i], err = strconv.ParseInt(v, 10, 64); err != nil || seq[i] < 1 {
			return fault.Invalid("must be the sequence of an entry: a whole number from 1", "query", name)
		}
	}
	if seq[1] != 0 && seq[1] < seq[0] {
		return fault.Invalid("must not be below from", "query", "to")
	}
	v, err := a.Ledger.Verify(ctx, tenant, seq[0], seq[1])
	if errors.Is(err, errBeyond) {
		return fault.Invalid("is beyond the last entry of the chain", "query", "from")
	}
	if err != nil {
		return err
	}
	if v.Whole {
		if err := a.Ledger.remember(ctx, tenant, v); err != nil {
			return err
		}
	}
	return c.JSON(http.StatusOK, verdictView(v))
}

// Checkpoints serves GET /audit/checkpoints.
func (a API) Checkpoints(c echo.Context) error {
	tenant, err := tenantOf(c)
	if err != nil {
		return err
	}
	limit, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	q := store.ListAuditCheckpointsParams{Tenant: tenant, MaxRows: int32(limit) + 1}
	var at position
	if ok, err := service.Cursor(c, &at); err != nil {
		return err
	} else if ok {
		q.Before = &at.Before
	}
	rows, err := a.Ledger.Store.ListAuditCheckpoints(c.Request().Context(), q)
	if err != nil {
		return err
	}
	out := api.AuditCheckpointList{Items: make([]api.AuditCheckpoint, 0, len(rows))}
	if len(rows) > limit {
		rows = rows[:limit]
		out.NextCursor = wire.OptionalText(service.EncodeCursor(c.Path(), position{rows[limit-1].Seq}))
	}
	for _, r := range rows {
		out.Items = append(out.Items, checkpointView(checkpointOf(r)))
	}
	return c.JSON(http.StatusOK, out)
}

func checkpointView(c chain.Checkpoint) api.AuditCheckpoint {
	return api.AuditCheckpoint{Seq: c.Seq, Hash: c.Hash, Ts: c.TS, KeyId: c.KeyID, Signature: c.Signature}
}

// MakeCheckpoint serves POST /audit/checkpoints.
func (a API) MakeCheckpoint(c echo.Context) error {
	ctx := c.Request().Context()
	p, _ := auth.FromContext(ctx)
	mark, made, err := a.Ledger.signHead(ctx, p.Tenant, &p.Name)
	switch {
	case err != nil:
		return err
	case made:
		return c.JSON(http.StatusCreated, checkpointView(mark))
	}
	return c.JSON(http.StatusOK, checkpointView(mark))
}

// Keys serves GET /audit/keys.
func (a API) Keys(c echo.Context) error {
	rows, err := a.Ledger.Store.ListAuditKeys(c.Request().Context())
	if err != nil {
		return err
	}
	trusted, err := a.Ledger.keys(c.Request().Context())
	if err != nil {
		return err
	}
	out := api.AuditKeyList{Items: make([]api.AuditKey, 0, len(rows))}
	for _, r := range rows {
		out.Items = append(out.Items, api.AuditKey{
			KeyId: r.KeyID, Algorithm: "Ed25519", PublicKey: r.PublicKey, Active: r.KeyID == a.Ledger.keyID(), Vouched: trusted.Has(r.PublicKey), CreatedAt: r.CreatedAt.UTC(),
		})
	}
	return c.JSON(http.StatusOK, out)
}

// Export serves GET /audit/export.
func (a API) Export(c echo.Context) error {
	ctx := c.Request().Context()
	tenant, err := tenantOf(c)
	if err != nil {
		return err
	}
	since, until, err := parseTimeRange(c)
	if err != nil {
		return err
	}
	// Before the range is chosen: it must not end before the verified entries.
	v, err := a.Ledger.Verify(ctx, tenant, 0, 0)
	if err != nil {
		return err
	}
	if err := a.Ledger.remember(ctx, tenant, v); err != nil {
		return err
	}
	head, err := a.Ledger.stretch(ctx, tenant, v.Memory, since, until)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "application/x-ndjson")
	h.Set(echo.HeaderContentDisposition, fmt.Sprintf(`attachment; filename="audit-%d-%d.ndjson"`, head.FromSeq, head.ToSeq))
	c.Response().WriteHeader(http.StatusOK)
	// A failure from here on leaves the bundle without its trailer, which a verifier reports.
	slow := http.NewResponseController(c.Response())
	page := func() error { return slow.SetWriteDeadline(time.Now().Add(exportPause)) }
	return a.Ledger.export(ctx, c.Response(), head, a.Ledger.ending(v, head), page)
}
