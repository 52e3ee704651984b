// Package audit keeps the ledger of actions and refusals, with their actors, in one hash chain per tenant.
//
// A fact is an outbox event of the action's own transaction. One replica at a time reads the facts of all services from
// the stream, in its order, and appends them (Ledger.Lead). All replicas answer queries about the chain and verify it.
//
//	fact ──outbox, stream──▶ appended ──every 1,000 entries or 10 min──▶ signed
//	  └──cannot be an entry──▶ dead letter
package audit

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// Consumer is the durable consumer of the stream, and its name in inbox and dead letters.
const Consumer = "control-plane-audit"

// Subject is the subject that the ledger consumes, of every tenant and service.
const Subject = "platform.*.audit.recorded"

const (
	checkpointEntries = 1000
	checkpointAge     = 10 * time.Minute
	checkpointTick    = 15 * time.Second
	verifyEvery       = time.Hour
	verifyTick        = time.Minute
	// verifications limits concurrent verifications in this process: each reads and hashes a whole chain.
	verifications = 2
)

// Parts are the dependencies of a Ledger.
type Parts struct {
	Store *store.Store
	// Conn is the broker connection; nil if events are only logged, so that none arrive.
	Conn   *nats.Conn `part:"optional"`
	Stream outbox.StreamConfig
	// Coordinator is the kind of coordinator that grants leases and their fences.
	Coordinator string
	// StateDir is the folder of the files beside the database; empty: that of the signing key.
	StateDir string `part:"optional"`
	Now      func() time.Time
	Log      *slog.Logger
}

// Ledger is the audit ledger of one replica.
type Ledger struct {
	Parts

	key     ed25519.PrivateKey // nil: nothing is signed
	roots   chain.Keys         // trusted regardless of the tables: the key and the configured ones
	macKey  []byte             // derived from key; nil without it
	anchors *anchors           // nil without a key
	epochs  *epochBook         // nil without a key
	memory  *memoryBook        // nil without a key
	seen    gauges
	busy    *semaphore.Weighted
}

// New returns a Ledger with its keys, or an error for a missing part. With an empty keyFile checkpoints are not signed;
// trusted are public keys in the format of chain.ParseKeys.
func New(p Parts, keyFile, trusted string) (*Ledger, error) {
	if err := service.RequireParts("audit", p); err != nil {
		return nil, err
	}
	l := &Ledger{Parts: p, busy: semaphore.NewWeighted(verifications)}
	return l, l.openKeys(keyFile, trusted)
}

func (l *Ledger) openKeys(keyFile, trusted string) (err error) {
	if l.roots, err = chain.ParseKeys(trusted); err != nil || keyFile == "" {
		return err
	}
	if l.key, err = chain.OpenKey(keyFile); err != nil {
		return err
	}
	public := l.key.Public().(ed25519.PublicKey)
	l.roots[chain.KeyID(public)] = public
	if l.macKey, err = chain.DeriveMACKey(l.key); err != nil {
		return err
	}
	stateFile := filepath.Join(cmp.Or(l.StateDir, filepath.Dir(keyFile)), filepath.Base(keyFile))
	if l.epochs, err = openEpochBook(stateFile + ".epochs"); err != nil {
		return err
	}
	l.anchors = &anchors{path: stateFile + ".anchors"}
	l.memory = newMemoryBook(stateFile)
	_, err = l.anchors.read()
	return err
}

// Lead appends facts, signs checkpoints and verifies all chains until ctx ends. It must run under a lease: the fence
// prevents a former leader from writing.
func (l *Ledger) Lead(ctx context.Context) error {
	if !l.sealUntilDone(ctx) {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	if l.Conn != nil {
		g.Go(func() error {
			if !l.awaitKey(ctx) {
				return nil
			}
			return outbox.Consume(ctx, outbox.ConsumerConfig{
				Conn: l.Conn, Pool: l.Store.Pool(), Name: Consumer, Subjects: []string{Subject}, Stream: l.Stream,
				HandleBatch: l.append, InOrder: true, KeepInbox: true,
			}, l.Log)
		})
	}
	g.Go(func() error {
		runEvery(ctx, checkpointTick, func(ctx context.Context) {
			l.vouchDue(ctx)
			l.noteEnds(ctx)
			l.signDue(ctx)
			l.anchorDue(ctx)
		})
		return nil
	})
	g.Go(func() error {
		runEvery(ctx, verifyTick, l.verifyDue)
		return nil
	})
	if err := g.Wait(); err != nil && !errors.Is(err, outbox.ErrStop) {
		return err
	}
	return nil
}

// waitFor returns after d, or when ctx ends.
func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// runEvery calls fn immediately and then every d until ctx ends.
func runEvery(ctx context.Context, d time.Duration, fn func(context.Context)) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for ctx.Err() == nil {
		fn(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func fenceFrom(ctx context.Context) int64 { return coord.Fence(ctx) }

// linkOf returns the hashed form of a row of audit_events.
func linkOf(r store.AuditEvent) chain.Link {
	var mac string
	if r.Mac != nil {
		mac = *r.Mac
	}
	return chain.Link{
		Entry: chain.Entry{
			V: chain.Version, Tenant: r.Tenant, Seq: r.Seq, EventID: r.EventID, TS: chain.Time(r.Ts), Source: r.Source, Actor: r.Actor,
			Action: r.Action, Target: r.Target, Outcome: r.Outcome, RequestID: r.RequestID, Details: r.Details,
		},
		PrevHash: r.PrevHash, Hash: r.Hash, MAC: mac,
	}
}

func checkpointOf(r store.AuditCheckpoint) chain.Checkpoint {
	return chain.Checkpoint{Seq: r.Seq, Hash: r.Hash, TS: chain.Time(r.Ts), KeyID: r.KeyID, Signature: r.Signature}
}
