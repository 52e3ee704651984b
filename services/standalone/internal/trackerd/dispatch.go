package trackerd

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

const (
	hookQueue    = 1000 // deliveries that wait; more are dropped and logged
	hookAttempts = 3
	hookTimeout  = 5 * time.Second
	hookBackoff  = 500 * time.Millisecond // before the second attempt, doubled before the third
	maxHookReply = 4 << 10
)

// delivery is one event to send, with the signed body.
type delivery struct {
	event hookEvent
	id    string
	body  []byte
}

// dispatcher calls webhooks, one after another so that events of one alias arrive in order. The queue is in memory: a
// restart loses it, as in a real server, and clients that must not miss an event also poll.
type dispatcher struct {
	s      *Server
	client *http.Client
	queue  chan delivery
	end    context.CancelFunc
	wg     sync.WaitGroup
}

func newDispatcher(s *Server) *dispatcher {
	ctx, cancel := context.WithCancel(context.Background())
	d := &dispatcher{s: s, queue: make(chan delivery, hookQueue), end: cancel, client: &http.Client{
		Timeout:       hookTimeout,
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	d.wg.Go(func() { d.run(ctx) })
	return d
}

func (d *dispatcher) close() {
	d.end()
	d.wg.Wait()
	d.client.CloseIdleConnections()
}

func (d *dispatcher) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-d.queue:
			if err := d.deliver(ctx, e); err != nil && ctx.Err() == nil {
				d.s.log.WarnContext(ctx, "webhook not delivered", slog.String("delivery", e.id), slog.Any("err", err))
			}
		}
	}
}

func (s *Server) newDelivery(event hookEvent, data map[string]any) (delivery, error) {
	body, err := json.Marshal(map[string]any{
		"entity": strings.ToLower(event.Entity), "action": strings.ToLower(event.Action),
		"timestamp": s.clock().UTC().Format(time.RFC3339Nano), "data": data})
	return delivery{event, uuid.NewString(), body}, err
}

// notify calls the webhooks subscribed to event, after the change is committed.
func (s *Server) notify(ctx context.Context, event hookEvent, data map[string]any) {
	d, err := s.newDelivery(event, data)
	if err != nil {
		s.log.ErrorContext(ctx, "webhook event not encoded", slog.Any("err", err))
		return
	}
	select {
	case s.hooks.queue <- d:
	default:
		s.log.WarnContext(ctx, "webhook queue full, event dropped", slog.String("entity", event.Entity), slog.String("action", event.Action))
	}
}

func (d *dispatcher) deliver(ctx context.Context, e delivery) error {
	want, err := json.Marshal([]hookEvent{e.event})
	if err != nil {
		return err
	}
	hooks, err := d.s.q.ActiveWebhooks(ctx, want)
	for _, w := range hooks {
		err = errors.Join(err, d.insist(ctx, w, e))
	}
	return err
}

// insist sends until the receiver takes or refuses the event.
func (d *dispatcher) insist(ctx context.Context, w store.Webhook, e delivery) error {
	for attempt := 1; ; attempt++ {
		status, _, err := d.send(ctx, w, e)
		switch {
		case err == nil && status < 300:
			return nil
		case err == nil && status < 500 && status != http.StatusTooManyRequests:
			return fmt.Errorf("webhook %s: HTTP %d", w.Name, status)
		case attempt == hookAttempts && err == nil:
			return fmt.Errorf("webhook %s: HTTP %d after %d attempts", w.Name, status, attempt)
		case attempt == hookAttempts:
			return fmt.Errorf("webhook %s after %d attempts: %w", w.Name, attempt, err)
		}
		t := time.NewTimer(hookBackoff << (attempt - 1))
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
}

// send makes one attempt and returns the status and the beginning of the answer.
func (d *dispatcher) send(ctx context.Context, w store.Webhook, e delivery) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Url, bytes.NewReader(e.body))
	if err != nil {
		return 0, "", err
	}
	at := strconv.FormatInt(d.s.clock().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-MLflow-Delivery-ID", e.id)
	req.Header.Set("X-MLflow-Timestamp", at)
	if w.Secret != "" {
		mac := hmac.New(sha256.New, []byte(w.Secret))
		fmt.Fprintf(mac, "%s.%s.%s", e.id, at, e.body)
		req.Header.Set("X-MLflow-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxHookReply))
	return resp.StatusCode, strings.ToValidUTF8(string(b), "�"), err
}
