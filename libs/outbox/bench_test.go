package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
)

// BenchmarkRelay measures committed events until they are acknowledged and
// marked, beside the floor: the same messages published to the same broker by
// JetStream's own asynchronous publisher, with as many unacknowledged. With the
// shipped setting the broker syncs its disk for each message, which bounds both.
func BenchmarkRelay(b *testing.B) {
	b.Run("broker=buffered", func(b *testing.B) { benchmarkRelay(b, testenv.NewBroker) })
	b.Run("broker=synced", func(b *testing.B) { benchmarkRelay(b, testenv.NewSyncedBroker) })
}

func benchmarkRelay(b *testing.B, broker func(testing.TB) *testenv.Broker) {
	const events = 10_000
	for b.Loop() {
		env := setupWith(b, broker(b))
		all := numbered(events)
		for part := all; len(part) > 0; part = part[1000:] {
			env.insert(b, part[:1000]...)
		}
		begin := time.Now()
		r, stop := env.relay(b, nil)
		testenv.Eventually(b, time.Minute, func() error {
			s, err := r.Stats(b.Context())
			if err != nil || s.Published != events {
				return fmt.Errorf("%+v, %v", s, err)
			}
			return nil
		})
		relay := events / time.Since(begin).Seconds()
		stop()
		floor := bare(b, env, events)
		b.ReportMetric(relay, "events/s")
		b.ReportMetric(floor, "floor-events/s")
		b.ReportMetric(relay/floor, "ratio")
	}
}

func bare(b *testing.B, env *bundle, n int) float64 {
	js, err := jetstream.New(env.nc, jetstream.WithPublishAsyncMaxPending(512))
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 450) // about what an envelope has
	begin := time.Now()
	for i := range n {
		msg := &nats.Msg{Subject: outbox.Subject("default", "job", "started"), Data: body, Header: nats.Header{}}
		msg.Header.Set(jetstream.MsgIDHeader, fmt.Sprint("bare-", i))
		if _, err := js.PublishMsgAsync(msg, jetstream.WithStallWait(time.Minute)); err != nil {
			b.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(time.Minute):
		b.Fatal("the floor was not acknowledged in time")
	}
	return float64(n) / time.Since(begin).Seconds()
}
