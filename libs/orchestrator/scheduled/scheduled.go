// Package scheduled defines the deployment of a model's scheduled trainings. The trainer's worker registers these
// deployments and `mlp pipeline deploy` writes them; both must agree, or each would undo the other's changes.
package scheduled

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/orchestrator"
)

const (
	// Flow is the flow of all scheduled trainings.
	Flow = "scheduled_training"
	// PlatformTag marks the deployments of this platform.
	PlatformTag = "platform"
	// unscheduledTag marks a deployment whose schedule an operator switched off; it stays off whatever the model
	// repository declares.
	unscheduledTag = "unscheduled"
)

// ParameterSchema is that of a scheduled training; without a model, every enabled one is trained.
const ParameterSchema = `{
	"type": "object", "title": "Parameters",
	"properties": {
		"model_name": {"type": ["string", "null"], "default": null, "title": "model_name"},
		"dataset_cls_name": {"type": ["string", "null"], "default": null, "title": "dataset_cls_name"},
		"is_dummy": {"type": "boolean", "default": false, "title": "is_dummy"}
	}
}`

// Deployment returns the deployment that trains a model by the schedule of its model.yaml. The caller adds the flow's
// id and the place where its runs are executed.
func Deployment(m *modelrepo.Model) orchestrator.CreateDeployment {
	d := orchestrator.CreateDeployment{
		Name: "platform-" + strings.ToLower(m.Name) + "-nightly", Description: "Trains " + m.Name + " by the schedule of its model.yaml.",
		ParameterSchema: json.RawMessage(ParameterSchema), EnforceParameterSchema: true,
		Parameters: map[string]any{"model_name": m.Name}, Tags: []string{PlatformTag},
		Schedules: CronSchedule(m.Schedule.Cron, m.Schedule.Timezone, m.Enabled && m.Schedule.Enabled),
	}
	if m.Schedule.ConcurrencyLimit > 0 {
		d.ConcurrencyLimit = &m.Schedule.ConcurrencyLimit
	}
	return d
}

// CronSchedule returns the one schedule of a deployment.
func CronSchedule(cron, zone string, active bool) []orchestrator.CreateSchedule {
	return []orchestrator.CreateSchedule{{Schedule: orchestrator.Cron{Cron: cron, Timezone: zone}, Active: active}}
}

// Unschedule disables the schedules until a later deployment sets them again.
func Unschedule(d *orchestrator.CreateDeployment) {
	d.Tags = append(slices.Clone(d.Tags), unscheduledTag)
	d.Schedules = slices.Clone(d.Schedules)
	for i := range d.Schedules {
		d.Schedules[i].Active = false
	}
}

// IsUnscheduled reports whether an operator switched the schedules of a deployment off.
func IsUnscheduled(d orchestrator.Deployment) bool {
	return slices.Contains(d.Tags, unscheduledTag)
}
