package orchestrator

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// Flow is a named piece of work.
type Flow struct {
	ID      uuid.UUID `json:"id"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Name    string    `json:"name"`
	Tags    []string  `json:"tags"`
}

// CreateFlow registers a flow; an existing one of that name is returned.
func (c *Client) CreateFlow(ctx context.Context, name string, tags ...string) (Flow, error) {
	in := struct {
		Name string   `json:"name"`
		Tags []string `json:"tags,omitempty"`
	}{name, tags}
	var out Flow
	_, err := c.call(ctx, http.MethodPost, "/flows/", in, &out)
	return out, err
}

// ReadFlow returns one flow.
func (c *Client) ReadFlow(ctx context.Context, id uuid.UUID) (Flow, error) {
	var out Flow
	_, err := c.call(ctx, http.MethodGet, "/flows/"+id.String(), nil, &out)
	return out, err
}

// ReadFlowByName returns the flow of that name.
func (c *Client) ReadFlowByName(ctx context.Context, name string) (Flow, error) {
	var out Flow
	_, err := c.call(ctx, http.MethodGet, "/flows/name/"+pathSegment(name), nil, &out)
	return out, err
}

// Deployment is a flow that can be run, with the schema of its parameters.
type Deployment struct {
	ID          uuid.UUID      `json:"id"`
	Created     time.Time      `json:"created"`
	Updated     time.Time      `json:"updated"`
	Name        string         `json:"name"`
	FlowID      uuid.UUID      `json:"flow_id"`
	Description *string        `json:"description"`
	Version     *string        `json:"version"`
	Entrypoint  *string        `json:"entrypoint"`
	Paused      bool           `json:"paused"`
	Tags        []string       `json:"tags"`
	Parameters  map[string]any `json:"parameters"`
	// ParameterSchema is a JSON schema of the parameters (draft 2020-12).
	ParameterSchema        json.RawMessage      `json:"parameter_openapi_schema"`
	EnforceParameterSchema bool                 `json:"enforce_parameter_schema"`
	Schedules              []DeploymentSchedule `json:"schedules"`
	WorkPoolName           *string              `json:"work_pool_name"`
	WorkQueueName          *string              `json:"work_queue_name"`
	// Status is READY or NOT_READY: whether a worker polls its pool.
	Status string `json:"status"`
}

// DeploymentSchedule is a schedule by which a deployment runs.
type DeploymentSchedule struct {
	ID       uuid.UUID `json:"id"`
	Active   bool      `json:"active"`
	Schedule Cron      `json:"schedule"`
}

// Cron is a schedule of five fields in a time zone. Schedules of other kinds
// leave Cron empty.
type Cron struct {
	Cron     string `json:"cron"`
	Timezone string `json:"timezone,omitempty"`
}

// DeclaresParameter reports whether the deployment's schema names the parameter.
func (d Deployment) DeclaresParameter(name string) bool {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(d.ParameterSchema, &schema) != nil {
		return false
	}
	_, ok := schema.Properties[name]
	return ok
}

// CreateDeployment describes a deployment to make or to bring up to date.
type CreateDeployment struct {
	FlowID                 uuid.UUID        `json:"flow_id"`
	Name                   string           `json:"name"`
	Description            string           `json:"description,omitempty"`
	Version                string           `json:"version,omitempty"`
	Entrypoint             string           `json:"entrypoint,omitempty"`
	Paused                 bool             `json:"paused"`
	Tags                   []string         `json:"tags,omitempty"`
	Parameters             map[string]any   `json:"parameters,omitempty"`
	ParameterSchema        json.RawMessage  `json:"parameter_openapi_schema,omitempty"`
	EnforceParameterSchema bool             `json:"enforce_parameter_schema"`
	Schedules              []CreateSchedule `json:"schedules,omitempty"`
	WorkPoolName           string           `json:"work_pool_name,omitempty"`
	WorkQueueName          string           `json:"work_queue_name,omitempty"`
	// ConcurrencyLimit limits the runs that may be PENDING or RUNNING at once; nil: no
	// limit.
	ConcurrencyLimit *int `json:"concurrency_limit,omitempty"`
}

// CreateSchedule is a schedule of a deployment to make.
type CreateSchedule struct {
	Schedule Cron `json:"schedule"`
	Active   bool `json:"active"`
}

// CreateDeployment makes a deployment, or brings the one of the same flow and
// name up to date.
func (c *Client) CreateDeployment(ctx context.Context, in CreateDeployment) (Deployment, error) {
	var out Deployment
	_, err := c.call(ctx, http.MethodPost, "/deployments/", in, &out)
	return out, err
}

// ReadDeployment returns one deployment.
func (c *Client) ReadDeployment(ctx context.Context, id uuid.UUID) (Deployment, error) {
	var out Deployment
	_, err := c.call(ctx, http.MethodGet, "/deployments/"+id.String(), nil, &out)
	return out, err
}

// ReadDeploymentByName returns the deployment known as "<flow>/<deployment>".
func (c *Client) ReadDeploymentByName(ctx context.Context, flow, deployment string) (Deployment, error) {
	var out Deployment
	_, err := c.call(ctx, http.MethodGet, "/deployments/name/"+pathSegment(flow)+"/"+pathSegment(deployment), nil, &out)
	return out, err
}

// Deployments lists the first MaxPage deployments of a flow, by name.
func (c *Client) Deployments(ctx context.Context, flow string) ([]Deployment, error) {
	in := map[string]any{"sort": "NAME_ASC", "limit": MaxPage, "flows": map[string]any{"name": map[string]any{"any_": []string{flow}}}}
	var out []Deployment
	_, err := c.call(ctx, http.MethodPost, "/deployments/filter", in, &out)
	return out, err
}

// DeleteDeployment removes a deployment; its runs stay.
func (c *Client) DeleteDeployment(ctx context.Context, id uuid.UUID) error {
	_, err := c.call(ctx, http.MethodDelete, "/deployments/"+id.String(), nil, nil)
	return err
}

// PauseDeployment stops its schedules; ResumeDeployment resumes them.
func (c *Client) PauseDeployment(ctx context.Context, id uuid.UUID) error {
	_, err := c.call(ctx, http.MethodPost, "/deployments/"+id.String()+"/pause_deployment", struct{}{}, nil)
	return err
}

// ResumeDeployment undoes PauseDeployment.
func (c *Client) ResumeDeployment(ctx context.Context, id uuid.UUID) error {
	_, err := c.call(ctx, http.MethodPost, "/deployments/"+id.String()+"/resume_deployment", struct{}{}, nil)
	return err
}
