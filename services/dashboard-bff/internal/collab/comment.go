// Package collab holds the discussion of an entity, such as model/JPCP or alert/budget:ai: comments, and the activity
// that merges them with the audit facts of the same entity.
package collab

import (
	"context"
	"errors"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/inbox"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notice"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// Config of New.
type Config struct {
	Pool    *pgxpool.Pool
	Clients *upstream.Clients
	Views   *compose.Pool
}

// Collab serves the routes under /api/v1/collab but those of snapshots.
type Collab struct{ cfg Config }

// New refuses missing parts.
func New(cfg Config) (*Collab, error) {
	if err := service.RequireParts("collab", cfg); err != nil {
		return nil, err
	}
	return &Collab{cfg}, nil
}

// entity is the subject of a comment.
type entity struct{ kind, id string }

var entityType = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// maxID limits an entity's id, in characters.
const maxID = 200

// modelType is the type whose ids are the same in any case, as model names are.
const modelType = "model"

func readEntity(c echo.Context) (entity, error) {
	kind, err := input.PathParam(c, "type")
	if err != nil {
		return entity{}, err
	}
	id, err := input.PathParam(c, "id")
	if err != nil {
		return entity{}, err
	}
	if !entityType.MatchString(kind) {
		return entity{}, input.Invalid("must be 1 to 32 of the characters a-z 0-9 _ - and begin with a letter", "path", "type")
	}
	if id == "" || utf8.RuneCountInString(id) > maxID || strings.IndexFunc(id, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) >= 0 {
		return entity{}, input.Invalid("must be 1 to 200 printable characters", "path", "id")
	}
	if kind == modelType {
		id = strings.ToUpper(id)
	}
	return entity{kind, id}, nil
}

// maxBody limits a comment, in characters.
const maxBody = 4000

// comment is a new comment before it is stored.
type comment struct {
	id         uuid.UUID
	body, html string
	mentions   []string
}

// parseComment validates and sanitizes typed text into a comment.
func parseComment(typed string) (comment, error) {
	if utf8.RuneCountInString(typed) > maxBody {
		return comment{}, input.Invalid("must be at most 4,000 characters", "body", "body")
	}
	body := strings.TrimSpace(Sanitize(typed))
	if body == "" {
		return comment{}, fault.EmptyComment.New("Nothing is left of the comment without its markup; write some text.")
	}
	rendered, err := Render(typed)
	if err != nil {
		return comment{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return comment{}, err
	}
	// Mentions are read from the visible text, not from attributes of tags that were removed.
	return comment{id: id, body: body, html: rendered, mentions: Mentions(html.UnescapeString(body))}, nil
}

// add stores a comment with its audit fact and notifies the people it mentions.
func (s *Collab) add(ctx context.Context, who caller.Caller, e entity, n comment) (api.Comment, error) {
	out := api.Comment{Id: n.id, Author: who.Subject, Body: n.body, BodyHtml: &n.html, Mentions: n.mentions}
	if who.Name != "" {
		out.AuthorName = &who.Name
	}
	err := postgres.InTx(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		at, err := store.New(tx).InsertComment(ctx, store.InsertCommentParams{
			ID: n.id, Tenant: who.Tenant, EntityType: e.kind, EntityID: e.id, Author: who.Subject, AuthorName: out.AuthorName,
			Body: n.body, BodyHtml: n.html, Mentions: n.mentions,
		})
		if err != nil {
			return err
		}
		out.CreatedAt = at.UTC()
		events := []outbox.Event{auditComment(ctx, who, "comment.add", e, n.id, map[string]any{"mentions": n.mentions})}
		for _, user := range n.mentions {
			events = append(events, outbox.Event{
				Tenant: who.Tenant, Namespace: "event", Name: "mention", SubjectID: e.path(), Actor: who.Subject,
				Payload: announce.Mention{User: user, Entity: e.path(), By: who.Subject, CommentID: n.id.String()},
			})
		}
		return announce.Insert(ctx, tx, events...)
	})
	return out, err
}

// path names an entity in events, as the routes do.
func (e entity) path() string { return e.kind + "/" + e.id }

// target names an entity in audit facts.
func (e entity) target() string { return e.kind + ":" + e.id }

// auditComment returns the fact of an act on a comment. Its target is the comment and not the entity, in whose
// activity the comment itself shows.
func auditComment(ctx context.Context, who caller.Caller, action string, e entity, id uuid.UUID, details map[string]any) outbox.Event {
	details["entity"] = e.path()
	return announce.Audit(ctx, who, action, "comment:"+id.String(), announce.OK, details)
}

// bury replaces a comment with a tombstone; its author and admins may. Repeated, it changes nothing.
func (s *Collab) bury(ctx context.Context, who caller.Caller, e entity, id uuid.UUID) error {
	return postgres.InTx(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		row, err := q.LockComment(ctx, store.LockCommentParams{Tenant: who.Tenant, EntityType: e.kind, EntityID: e.id, ID: id})
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.NotFound.New("There is no such comment on " + e.path() + ".")
		}
		if err != nil {
			return err
		}
		if row.Author != who.Subject && !who.Role.Covers(caller.Admin) {
			return fault.RoleRequired.New("Only the author of a comment, or an admin, may remove it.")
		}
		if row.DeletedAt != nil {
			return nil
		}
		if err := q.BuryComment(ctx, store.BuryCommentParams{Tenant: who.Tenant, ID: id, DeletedBy: &who.Subject}); err != nil {
			return err
		}
		now, err := q.ReadClock(ctx) // the clock of the mention
		if err != nil {
			return err
		}
		if err := inbox.End(ctx, tx, who.Tenant, notice.Mention, id.String(), "removed", now); err != nil {
			return err
		}
		return announce.Insert(ctx, tx, auditComment(ctx, who, "comment.delete", e, id, map[string]any{"author": row.Author}))
	})
}

// viewComment converts a stored comment to the wire type.
func viewComment(r store.ListCommentsRow) api.Comment {
	out := api.Comment{
		Id: r.ID, Author: r.Author, AuthorName: r.AuthorName, Body: r.Body, BodyHtml: &r.BodyHtml, CreatedAt: r.CreatedAt.UTC(),
		Mentions: append([]string{}, slices.Clone(r.Mentions)...),
	}
	if r.DeletedAt != nil {
		deleted := true
		out.Deleted = &deleted
	}
	return out
}
