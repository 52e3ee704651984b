package bus

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/wire"
)

// refreshEvery is how often the models' identities are read again.
const refreshEvery = 30 * time.Second

// firstRetry is how soon a failed first reading is repeated; it doubles up to refreshEvery.
const firstRetry = 250 * time.Millisecond

// directory maps UUIDs on the bus to models. The control plane reads them from the model repository.
type directory struct {
	client *controlplane.Client
	log    *slog.Logger
	models atomic.Pointer[map[string]string] // lower-case UUID to model name; nil before the first reading
	fault  atomic.Pointer[string]            // why the last reading failed
}

// lookUp returns the model of a UUID.
func (d *directory) lookUp(id string) (name string, ok bool) {
	if models := d.models.Load(); models != nil {
		name, ok = (*models)[strings.ToLower(id)]
	}
	return name, ok
}

// named is a model on the bus by its name in any case, as the platform writes it; empty if there is none.
func (d *directory) named(name string) string {
	if models := d.models.Load(); models != nil {
		for _, known := range *models {
			if strings.EqualFold(known, name) {
				return known
			}
		}
	}
	return ""
}

// size is how many models are on the bus.
func (d *directory) size() int {
	if models := d.models.Load(); models != nil {
		return len(*models)
	}
	return 0
}

// lastFault is why the last reading failed; empty if it did not.
func (d *directory) lastFault() string {
	if f := d.fault.Load(); f != nil {
		return *f
	}
	return ""
}

// run reads the identities until ctx ends. While the control plane is unreachable, the last ones read stay in force.
func (d *directory) run(ctx context.Context) error {
	wait := firstRetry
	for {
		if err := d.refresh(ctx); err != nil && ctx.Err() == nil {
			text := "the models on the bus could not be read from the control plane: " + err.Error()
			if d.lastFault() != text {
				d.log.WarnContext(ctx, text)
			}
			d.fault.Store(&text)
		} else if err == nil {
			d.fault.Store(nil)
		}
		if d.models.Load() != nil {
			wait = refreshEvery
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = min(2*wait, refreshEvery)
	}
}

func (d *directory) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := wire.Decode[[]controlplane.Model](d.client.ListModels(ctx))
	if err != nil {
		return fmt.Errorf("list models: %w", err)
	}
	models := make(map[string]string, len(list))
	for _, m := range list {
		if m.BusUuid != nil {
			models[strings.ToLower(*m.BusUuid)] = m.ModelName
		}
	}
	d.models.Store(&models)
	return nil
}
