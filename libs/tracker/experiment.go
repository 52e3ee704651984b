package tracker

import (
	"context"
	"errors"
	"net/url"
	"time"
)

// Experiment groups runs.
type Experiment struct {
	ID               string
	Name             string
	ArtifactLocation string
	Deleted          bool
	Created          time.Time
	Tags             map[string]string
}

type experimentWire struct {
	ID               string `json:"experiment_id"`
	Name             string `json:"name"`
	ArtifactLocation string `json:"artifact_location"`
	Stage            string `json:"lifecycle_stage"`
	Created          milli  `json:"creation_time"`
	Tags             []pair `json:"tags"`
}

func (w experimentWire) experiment() Experiment {
	return Experiment{w.ID, w.Name, w.ArtifactLocation, w.Stage == "deleted", w.Created.Time, fromPairs(w.Tags)}
}

// CreateExperiment makes an experiment; [ErrExists] if the name is taken, also by a deleted one.
func (c *Client) CreateExperiment(ctx context.Context, name string, tags map[string]string) (id string, err error) {
	in := struct {
		Name string `json:"name"`
		Tags []pair `json:"tags,omitempty"`
	}{name, toPairs(tags)}
	var out struct {
		ID string `json:"experiment_id"`
	}
	err = c.post(ctx, "experiments/create", in, &out)
	return out.ID, err
}

// GetExperimentByName finds an experiment, also a deleted one; [ErrNotFound] if there is none.
func (c *Client) GetExperimentByName(ctx context.Context, name string) (Experiment, error) {
	var out struct {
		Experiment experimentWire `json:"experiment"`
	}
	err := c.get(ctx, "experiments/get-by-name", url.Values{"experiment_name": {name}}, &out)
	return out.Experiment.experiment(), err
}

// EnsureExperiment returns the experiment of that name: made now if there is
// none, restored if it was deleted.
func (c *Client) EnsureExperiment(ctx context.Context, name string) (Experiment, error) {
	e, err := c.GetExperimentByName(ctx, name)
	if errors.Is(err, ErrNotFound) {
		// Another process may be first: then its experiment is read.
		if _, err := c.CreateExperiment(ctx, name, nil); err != nil && !errors.Is(err, ErrExists) {
			return Experiment{}, err
		}
		e, err = c.GetExperimentByName(ctx, name)
	}
	if err != nil || !e.Deleted {
		return e, err
	}
	err = c.post(ctx, "experiments/restore", map[string]string{"experiment_id": e.ID}, nil)
	e.Deleted = err != nil
	return e, err
}
