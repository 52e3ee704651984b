package controltower

import (
	"context"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/report"
)

// MaxReport limits the bytes of a report that the server reads.
const MaxReport = canon.MaxFile

// Status reads the server's capabilities and limits.
func (c *Client) Status(ctx context.Context) (Result[Status], error) {
	return readResult[Status](ctx, c, "/status", func(a *documentReply) error { return a.ofKind("svc-control-tower-status", true) })
}

// OpenAPI reads the OpenAPI document of the running build.
func (c *Client) OpenAPI(ctx context.Context) (Result[map[string]any], error) {
	return readResult[map[string]any](ctx, c, "/openapi.json", func(a *documentReply) error {
		_, info := a.at("info").(*canon.Object)
		_, paths := a.at("paths").(*canon.Object)
		if a.text("x-svc-kind") != "svc-openapi" || a.text("x-svc-schema-version") != "0.1" ||
			!strings.HasPrefix(a.text("openapi"), "3.") || !info || !paths {
			return a.broken("the answer is not the OpenAPI 3 document of this API")
		}
		return nil
	})
}

// Metrics reads the counters of the running process.
func (c *Client) Metrics(ctx context.Context) (Result[Metrics], error) {
	return readResult[Metrics](ctx, c, "/metrics", func(a *documentReply) error { return a.ofKind("svc-api-operational-metrics", false) })
}

// InspectRunEvidence returns the inspection snapshot of a report, the bytes of its
// file. Nothing is stored. It is never retried.
func (c *Client) InspectRunEvidence(ctx context.Context, reportJSON []byte) (Result[document.Inspection], error) {
	if len(reportJSON) > MaxReport {
		return Result[document.Inspection]{}, misuseError("the report is longer than the %d bytes the server reads", MaxReport)
	}
	a, err := c.ask(ctx, "POST", "/run-evidence/inspect", reportJSON,
		field{"Content-Type", typeJSON}, field{"Content-Length", strconv.Itoa(len(reportJSON))})
	if err == nil {
		err = checkInspection(a, reportJSON)
	}
	if err != nil {
		return Result[document.Inspection]{}, err
	}
	return decodeResult[document.Inspection](a)
}

func checkInspection(a *documentReply, sent []byte) error {
	if err := a.ofKind(document.KindInspection, true); err != nil {
		return err
	}
	if a.text("snapshot", "kind") != "svc-control-tower-snapshot" {
		return a.broken("the answer holds no inspection snapshot")
	}
	if err := a.digest(a.at("snapshot"), "snapshot_digest"); err != nil {
		return err
	}
	asked, err := canon.Parse(sent, canon.ObjectRoot())
	if err != nil {
		return a.broken("the server accepted a report that is no acceptable JSON object")
	}
	id, _ := asked.(*canon.Object).Get("run_id")
	name, _ := id.(string)
	if err := a.same("run", name, "snapshot", "source", "run_id"); err != nil {
		return err
	}
	return a.digest(asked, "snapshot", "source", "evidence_report_digest")
}

// Run reads one run.
func (c *Client) Run(ctx context.Context, runID string) (Result[document.Run], error) {
	return readOne[document.Run](ctx, c, "/runs/", "run id", runID, "", func(a *documentReply) error {
		return firstFault(a.ofKind(document.KindRun, true), a.isRun(a.at("run")), a.same("run", runID, "run", "run_id"))
	})
}

// RunAttempts reads the attempts of a run.
func (c *Client) RunAttempts(ctx context.Context, runID string) (Result[document.RunAttempts], error) {
	return readOne[document.RunAttempts](ctx, c, "/runs/", "run id", runID, "/attempts", func(a *documentReply) error {
		if _, ok := a.at("attempts").(canon.Array); !ok {
			return a.broken("the answer holds no list of attempts")
		}
		return firstFault(a.ofKind(document.KindRunAttempts, true), a.same("run", runID, "run_id"))
	})
}

// RunEvidence reads the retained evidence report of a run and recomputes its digest.
func (c *Client) RunEvidence(ctx context.Context, runID string) (Result[document.RunEvidence], error) {
	return readOne[document.RunEvidence](ctx, c, "/runs/", "run id", runID, "/evidence", func(a *documentReply) error {
		if err := firstFault(a.ofKind(document.KindRunEvidence, true), a.same("run", runID, "run_id")); err != nil {
			return err
		}
		if a.text("evidence_report", "kind") != report.Kind {
			return a.broken("the answer holds no evidence report")
		}
		return firstFault(a.same("run", runID, "evidence_report", "run_id"), a.digest(a.at("evidence_report"), "evidence_report_digest"))
	})
}

// WorkUnit reads one work unit and its revisions.
func (c *Client) WorkUnit(ctx context.Context, workUnitID string) (Result[document.WorkUnit], error) {
	return readOne[document.WorkUnit](ctx, c, "/work-units/", "work unit id", workUnitID, "", func(a *documentReply) error {
		return firstFault(a.ofKind(document.KindWorkUnit, true), a.same("work unit", workUnitID, "work_unit", "id"))
	})
}

// Project reads the summary of one project's runs.
func (c *Client) Project(ctx context.Context, projectID string) (Result[document.Project], error) {
	return readOne[document.Project](ctx, c, "/projects/", "project id", projectID, "", func(a *documentReply) error {
		return firstFault(a.ofKind(document.KindProject, true), a.same("project", projectID, "project", "project_id"))
	})
}

// Connection reads one connector, free of secrets.
func (c *Client) Connection(ctx context.Context, connectionID string) (Result[document.Connection], error) {
	return readOne[document.Connection](ctx, c, "/connections/", "connection id", connectionID, "", func(a *documentReply) error {
		return firstFault(a.ofKind(document.KindConnection, true), a.same("connection", connectionID, "connection", "id"))
	})
}

func readOne[T any](ctx context.Context, c *Client, collection, what, id, sub string, check func(*documentReply) error) (Result[T], error) {
	path, err := resourcePath(collection, what, id)
	if err != nil {
		return Result[T]{}, err
	}
	return readResult[T](ctx, c, path+sub, check)
}

func readResult[T any](ctx context.Context, c *Client, target string, check func(*documentReply) error) (Result[T], error) {
	a, err := c.get(ctx, target)
	if err == nil {
		err = check(a)
	}
	if err != nil {
		return Result[T]{}, err
	}
	return decodeResult[T](a)
}

// firstFault returns the first fault of checks that need no order.
func firstFault(faults ...error) error {
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return nil
}
