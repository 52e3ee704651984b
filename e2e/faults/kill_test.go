//go:build e2e || faults

package faults

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// plan sets the number of kills and of requests during them.
type plan struct {
	kills      int           // of each process
	each       int           // retrains, and as many approvals
	brokerAway time.Duration // once, in the middle
}

// underKills sends the commands while each process is killed in turn, in an order and at moments derived from the seed,
// and checks everything at the end.
func underKills(t *testing.T, p plan) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("FAULTS_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("FAULTS_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("FAULTS_SEED=%d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))

	w := newWorld(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go w.work(ctx)
	l := newLoad(w, p.each)
	begin := time.Now()
	steps := p.kills*len(w.parts) + 10 // as much again while the broker is away
	portion := (len(l.commands) + steps - 1) / steps
	for round := range p.kills {
		if round == p.kills/2 {
			w.withoutBroker(t, p.brokerAway, func() { l.send(ctx, portion) })
		}
		for _, i := range chance.Perm(len(w.parts)) {
			half := portion / 2
			l.send(ctx, portion-half)
			letTimePass(t, time.Duration(chance.IntN(60))*time.Millisecond) // the kill may hit any part of the work
			w.parts[i].dies(t, time.Second, func() { l.send(ctx, half) })
			w.allAlive()
		}
	}
	l.send(ctx, len(l.commands)) // the remainder of the division
	l.finish(t)
	took := time.Since(begin)
	harness.Eventually(t, settle, func() error {
		for _, p := range w.parts {
			if err := p.up(); err != nil {
				return err
			}
		}
		return nil
	})
	w.atRest(t, l.commands)
	w.ranOnce(t, l.commands)
	facts := w.ledgerHolds(t)
	events := w.arrivedOnce(t)
	w.allAlive()
	w.report(t, l, took, events, facts)
}

// withoutBroker stops NATS for a time and calls a function ten times meanwhile.
func (w *world) withoutBroker(t *testing.T, away time.Duration, meanwhile func()) {
	t.Helper()
	broker := w.part("nats")
	broker.kill()
	for range 10 {
		meanwhile()
		letTimePass(t, away/10)
	}
	if n, err := queryInt(w.plane, "select count(*) from outbox where poison_at is not null or refusals > 0"); err != nil || n != 0 {
		t.Errorf("the outage cost %d events an attempt, %v; want n == 0", n, err)
	}
	broker.returns(t)
}
