package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamName is the one stream of the platform.
const StreamName = "PLATFORM"

// MaxMessage limits a published event in bytes.
const MaxMessage = 1 << 20

// StreamConfig holds an installation's choices for the stream.
type StreamConfig struct {
	Replicas int   // 0 means 1
	MaxBytes int64 // oldest events go when it is full; 0 means 1 GiB
}

const (
	streamAge        = 7 * 24 * time.Hour
	duplicateWindow  = 10 * time.Minute
	brokerTimeout    = 5 * time.Second // for a request to the broker
	defaultMaxBytes  = 1 << 30
	subjectsOfStream = "platform.>"
)

// EnsureStream makes the stream when it is absent. An existing one stays as it
// is: its settings belong to the broker's operator.
func EnsureStream(ctx context.Context, js jetstream.JetStream, cfg StreamConfig) error {
	_, err := openStream(ctx, js, cfg)
	return err
}

func openStream(ctx context.Context, js jetstream.JetStream, cfg StreamConfig) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, brokerTimeout)
	defer cancel()
	s, err := js.Stream(ctx, StreamName)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		if err != nil {
			return nil, fmt.Errorf("outbox: stream %s: %w", StreamName, err)
		}
		return s, nil
	}
	s, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: StreamName, Subjects: []string{subjectsOfStream}, Description: "Events of the platform",
		Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
		MaxAge: streamAge, MaxBytes: orDefault(cfg.MaxBytes, defaultMaxBytes), MaxMsgSize: MaxMessage,
		Duplicates: duplicateWindow, Replicas: orDefault(cfg.Replicas, 1), AllowDirect: true,
		AllowAtomicPublish: true, // a batch costs the broker one sync of its disk, not one for each event
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another service was quicker, with another size
		s, err = js.Stream(ctx, StreamName)
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: make stream %s: %w", StreamName, err)
	}
	return s, nil
}

func orDefault[T int | int64 | time.Duration](v, fallback T) T {
	if v == 0 {
		return fallback
	}
	return v
}
