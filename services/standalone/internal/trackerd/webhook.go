package trackerd

import (
	"context"
	"encoding/json"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

const maxWebhooks = 100

type hookEvent struct {
	Entity string `json:"entity"`
	Action string `json:"action"`
}

// Registry events that webhooks can subscribe to.
var (
	registeredModelCreated = hookEvent{"REGISTERED_MODEL", "CREATED"}
	versionCreated         = hookEvent{"MODEL_VERSION", "CREATED"}
	versionTagSet          = hookEvent{"MODEL_VERSION_TAG", "SET"}
	versionTagDeleted      = hookEvent{"MODEL_VERSION_TAG", "DELETED"}
	aliasCreated           = hookEvent{"MODEL_VERSION_ALIAS", "CREATED"}
	aliasDeleted           = hookEvent{"MODEL_VERSION_ALIAS", "DELETED"}

	hookEvents = []hookEvent{registeredModelCreated, versionCreated, versionTagSet, versionTagDeleted, aliasCreated, aliasDeleted}
)

// webhook is a webhook as the API returns it: without its secret, which the database
// holds in clear text, since deliveries are signed with it.
type webhook struct {
	ID          string      `json:"webhook_id"`
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	URL         string      `json:"url"`
	Events      []hookEvent `json:"events"`
	Status      string      `json:"status"`
	Created     int64       `json:"creation_timestamp"`
	Updated     int64       `json:"last_updated_timestamp"`
}

type webhookAnswer struct {
	Webhook webhook `json:"webhook"`
}

func toWebhook(w store.Webhook) (webhook, error) {
	out := webhook{w.ID, w.Name, w.Description, w.Url, nil, w.Status, w.Created, w.Updated}
	return out, json.Unmarshal(w.Events, &out.Events)
}

// webhookIn holds the settings of a webhook; absent members stay as they are.
type webhookIn struct {
	ID          string      `json:"webhook_id"`
	Name        *string     `json:"name"`
	Description *string     `json:"description"`
	URL         *string     `json:"url"`
	Events      []hookEvent `json:"events"`
	Secret      *string     `json:"secret"`
	Status      string      `json:"status"`
}

var webhookName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// apply checks the members given and puts them into w.
func (in webhookIn) apply(w *store.Webhook) error {
	if in.Name != nil {
		if !webhookName.MatchString(*in.Name) {
			return invalidParameter("Webhook name '%s' is invalid. It must start and end with a letter or digit, be less than 63 characters long, and contain only letters, digits, dots (.), underscores (_), and hyphens (-).", clipValue(*in.Name))
		}
		w.Name = *in.Name
	}
	if in.Description != nil {
		if err := checkDescription(in.Description); err != nil {
			return err
		}
		w.Description = *in.Description
	}
	if in.URL != nil {
		if err := checkHookURL(*in.URL); err != nil {
			return err
		}
		w.Url = *in.URL
	}
	if in.Secret != nil {
		if err := checkLength("secret", *in.Secret, maxName); err != nil {
			return err
		}
		w.Secret = *in.Secret
	}
	switch in.Status {
	case "":
	case "ACTIVE", "DISABLED":
		w.Status = in.Status
	default:
		return invalidValue("status", in.Status, "Valid values are ACTIVE, DISABLED.")
	}
	for _, e := range in.Events {
		if !slices.Contains(hookEvents, e) {
			return invalidParameter("This server has no event '%s' of entity '%s'.", clipValue(e.Action), clipValue(e.Entity))
		}
	}
	if len(in.Events) > 0 {
		events := slices.Clone(in.Events)
		slices.SortFunc(events, func(a, b hookEvent) int { return strings.Compare(a.Entity+a.Action, b.Entity+b.Action) })
		b, err := json.Marshal(slices.Compact(events))
		if err != nil {
			return err
		}
		w.Events = b
	}
	return nil
}

// checkHookURL allows TLS to anywhere and plain HTTP to this machine only.
func checkHookURL(s string) error {
	if err := checkLength("url", s, maxName); err != nil {
		return err
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil {
		return invalidParameter("Invalid webhook URL: %q. It must be absolute and hold no credentials.", clipValue(s))
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return invalidParameter("Invalid webhook URL scheme: '%s'. Allowed are https, and http to this machine.", clipValue(u.Scheme))
	}
	return nil
}

func webhookTaken(err error, name string) error {
	if postgres.IsUnique(err, "webhook_name_key") {
		return alreadyExists("Webhook with name %s already exists.", name)
	}
	return err
}

func (s *Server) createWebhook(ctx context.Context, in webhookIn) (any, error) {
	switch {
	case in.Name == nil:
		return nil, missingParameter("name")
	case in.URL == nil:
		return nil, missingParameter("url")
	case len(in.Events) == 0:
		return nil, missingParameter("events")
	}
	w := store.Webhook{Status: "ACTIVE"}
	if err := in.apply(&w); err != nil {
		return nil, err
	}
	n, err := s.q.CountWebhooks(ctx)
	if err != nil {
		return nil, err
	}
	if n >= maxWebhooks {
		return nil, invalidParameter("There are %d webhooks already; at most %d are kept.", n, maxWebhooks)
	}
	w, err = s.q.CreateWebhook(ctx, store.CreateWebhookParams{ID: hexID(), Name: w.Name, Description: w.Description, Url: w.Url,
		Events: w.Events, Secret: w.Secret, Status: w.Status, Created: s.now()})
	if err != nil {
		return nil, webhookTaken(err, *in.Name)
	}
	out, err := toWebhook(w)
	return webhookAnswer{out}, err
}

func (s *Server) listWebhooks(ctx context.Context, in struct {
	Max   *integer `json:"max_results"`
	Token string   `json:"page_token"`
}) (any, error) {
	p, err := newPage(in.Max, maxWebhooks, 1000, 1000, in.Token)
	if err != nil {
		return nil, err
	}
	found, err := s.q.Webhooks(ctx, store.WebhooksParams{Limit: int32(p.limit + 1), Offset: int32(p.offset)})
	if err != nil {
		return nil, err
	}
	more := len(found) > p.limit
	found = found[:min(len(found), p.limit)]
	var out struct {
		Webhooks []webhook `json:"webhooks,omitempty"`
		Next     string    `json:"next_page_token,omitempty"`
	}
	for _, w := range found {
		v, err := toWebhook(w)
		if err != nil {
			return nil, err
		}
		out.Webhooks = append(out.Webhooks, v)
	}
	out.Next = p.next(len(found), more)
	return out, nil
}

type webhookRef struct {
	ID string `json:"webhook_id"`
}

func noWebhook(err error, id string) error {
	return orNotFound(err, "Webhook with ID %s not found.", clipValue(id))
}

func (s *Server) getWebhook(ctx context.Context, in webhookRef) (any, error) {
	w, err := s.q.Webhook(ctx, in.ID)
	if err != nil {
		return nil, noWebhook(err, in.ID)
	}
	out, err := toWebhook(w)
	return webhookAnswer{out}, err
}

func (s *Server) updateWebhook(ctx context.Context, in webhookIn) (any, error) {
	var out webhook
	err := s.tx(ctx, func(q *store.Queries) error {
		w, err := q.LockWebhook(ctx, in.ID)
		if err != nil {
			return noWebhook(err, in.ID)
		}
		if err := in.apply(&w); err != nil {
			return err
		}
		w, err = q.UpdateWebhook(ctx, store.UpdateWebhookParams{ID: w.ID, Name: w.Name, Description: w.Description, Url: w.Url,
			Events: w.Events, Secret: w.Secret, Status: w.Status, Updated: s.now()})
		if err != nil {
			return webhookTaken(err, w.Name)
		}
		out, err = toWebhook(w)
		return err
	})
	return webhookAnswer{out}, err
}

func (s *Server) deleteWebhook(ctx context.Context, in webhookRef) (any, error) {
	n, err := s.q.DeleteWebhook(ctx, in.ID)
	if err == nil && n == 0 {
		err = notFound("Webhook with ID %s not found.", clipValue(in.ID))
	}
	return nil, err
}

// samples are the payloads of a webhook test, by event.
var samples = map[hookEvent]map[string]any{
	registeredModelCreated: {"name": "example_model", "tags": map[string]string{"example_key": "example_value"}, "description": "An example registered model"},
	versionCreated: {"name": "example_model", "version": "1", "source": "models:/123", "run_id": "abcd1234abcd5678",
		"tags": map[string]string{"example_key": "example_value"}, "description": "An example model version"},
	versionTagSet:     {"name": "example_model", "version": "1", "key": "example_key", "value": "example_value"},
	versionTagDeleted: {"name": "example_model", "version": "1", "key": "example_key"},
	aliasCreated:      {"name": "example_model", "alias": "example_alias", "version": "1"},
	aliasDeleted:      {"name": "example_model", "alias": "example_alias"},
}

func (s *Server) testWebhook(ctx context.Context, in struct {
	webhookRef
	Event *hookEvent `json:"event"`
}) (any, error) {
	w, err := s.q.Webhook(ctx, in.ID)
	if err != nil {
		return nil, noWebhook(err, in.ID)
	}
	hook, err := toWebhook(w)
	if err != nil {
		return nil, err
	}
	event := hook.Events[0]
	if in.Event != nil {
		event = *in.Event
	}
	data, ok := samples[event]
	if !ok {
		return nil, invalidParameter("This server has no event '%s' of entity '%s'.", clipValue(event.Action), clipValue(event.Entity))
	}
	d, err := s.newDelivery(event, data)
	if err != nil {
		return nil, err
	}
	type result struct {
		Success bool   `json:"success"`
		Status  int    `json:"response_status,omitempty"`
		Body    string `json:"response_body,omitempty"`
		Error   string `json:"error_message,omitempty"`
	}
	status, body, err := s.hooks.send(ctx, w, d)
	out := result{Success: err == nil && status < 300, Status: status, Body: body}
	if err != nil {
		out.Error = err.Error()
	}
	return map[string]result{"result": out}, nil
}
