package coord

import (
	"bytes"
	"context"
	"time"
)

// watchEvery is the delay until a published setting is seen: well within the
// promised second. Polling a handful of rows needs no open connection and cannot
// miss a notification.
const watchEvery = 400 * time.Millisecond

// watchConfig is WatchConfig on top of a way to read all settings.
func watchConfig(ctx context.Context, load func(context.Context) (map[string][]byte, error), fn func(string, []byte)) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	known := map[string][]byte{}
	for {
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
		now, err := load(one)
		cancel()
		if err == nil && ctx.Err() == nil {
			for k, v := range now {
				if old, ok := known[k]; !ok || !bytes.Equal(old, v) {
					fn(k, v)
				}
			}
			for k := range known {
				if _, ok := now[k]; !ok {
					fn(k, nil)
				}
			}
			known = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
