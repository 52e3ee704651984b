package controltower_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/go/controltower"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

func TestRecordedExchanges(t *testing.T) {
	t.Parallel()
	for group, cases := range loadSuite(t) {
		for _, c := range cases {
			t.Run(group+"/"+c.Name, func(t *testing.T) { t.Parallel(); replayExchange(t, c) })
		}
	}
}

// replayExchange plays one recorded exchange through the Go client.
func replayExchange(t *testing.T, c recorded) {
	p := playExchanges(t, c.Exchanges)
	got, err := performCall(t, p.port, c)
	if c.Expect.Error != "" || err != nil {
		compareError(t, c.Expect, err)
	}
	c.Expect.Error, c.Expect.StatusCode, c.Expect.Code, c.Expect.Retryable = "", 0, "", false
	c.Expect.RetryAfter, c.Expect.Details = nil, nil
	if err != nil {
		c.Expect.RequestID = ""
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(c.Expect)
	if string(a) != string(b) {
		t.Errorf("got      %s\nexpected %s; want string(a) == string(b)", a, b)
	}
	p.verify(t, len(c.Exchanges))
}

func compareError(t *testing.T, want expectation, err error) {
	t.Helper()
	protocol, isProtocol := errors.AsType[*controltower.ProtocolError](err)
	_, isIntegrity := errors.AsType[*controltower.IntegrityError](err)
	_, isTransport := errors.AsType[*controltower.TransportError](err)
	_, isConfig := errors.AsType[*controltower.ConfigError](err)
	api, isAPI := errors.AsType[*controltower.APIError](err)
	is := map[string]bool{
		"config": isConfig, "transport": isTransport, "protocol": isProtocol && !isIntegrity,
		"integrity": isIntegrity && isProtocol, "api": isAPI,
	}
	if !is[want.Error] {
		t.Fatalf("error %T %v; expected a %s error", err, err, want.Error)
	}
	if isProtocol && protocol.RequestID != want.RequestID {
		t.Errorf("request id %q of %v; expected %q", protocol.RequestID, err, want.RequestID)
	}
	if !isAPI {
		return
	}
	retry := -1
	if want.RetryAfter != nil {
		retry = *want.RetryAfter
	}
	details := canonicalJSON(t, want.Details)
	gotDetails := ""
	if api.Details != nil {
		c1, _ := canon.C1(api.Details)
		gotDetails = string(c1)
	}
	if api.StatusCode != want.StatusCode || api.Code != want.Code || api.Retryable != want.Retryable || api.RetryAfter != retry ||
		api.RequestID != want.RequestID || gotDetails != details || api.Message == "" {
		t.Errorf("%+v with details %s; expected %+v with %s", api, gotDetails, want, details)
	}
}

func canonicalJSON(t *testing.T, raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	v, err := canon.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	c1, err := canon.C1(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(c1)
}

type arguments struct {
	RunID         string            `json:"run_id"`
	WorkUnitID    string            `json:"work_unit_id"`
	ProjectID     string            `json:"project_id"`
	ConnectionID  string            `json:"connection_id"`
	Limit         *int              `json:"limit"`
	Cursor        string            `json:"cursor"`
	State         string            `json:"state"`
	EventType     string            `json:"event_type"`
	PageSize      int               `json:"page_size"`
	MaxItems      int               `json:"max_items"`
	Report        string            `json:"report"`
	IdleTimeout   float64           `json:"idle_timeout"`
	LastEventID   *int64            `json:"last_event_id"`
	MaxEvents     int               `json:"max_events"`
	MaxSeconds    float64           `json:"max_seconds"`
	MaxFrameBytes int               `json:"max_frame_bytes"`
	Filters       map[string]string `json:"filters"`
}

func secondsToDuration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// performCall makes the call and returns its outcome in the terms of the suite.
func performCall(t *testing.T, port int, c recorded) (expectation, error) {
	base := c.Client.BaseURL
	if base == "" {
		base = "http://127.0.0.1:{port}"
	}
	timeout := 20.0
	if c.Client.Timeout != 0 {
		timeout = c.Client.Timeout
	}
	secret := token
	if c.Client.Token != nil {
		secret = *c.Client.Token
	}
	var options []controltower.Option
	if r := c.Client.Retry; r != nil {
		options = append(options, controltower.WithRetry(controltower.RetryPolicy{
			MaxAttempts: r.MaxAttempts, BaseDelay: secondsToDuration(r.BaseDelay), MaxDelay: secondsToDuration(r.MaxDelay), IgnoreRetryAfter: !r.HonorRetryAfter,
		}))
	}
	client, err := controltower.New(strings.ReplaceAll(base, "{port}", fmt.Sprint(port)), secret, secondsToDuration(timeout), options...)
	if err != nil {
		return expectation{}, err
	}
	var a arguments
	if len(c.Args) > 0 {
		if err := json.Unmarshal(c.Args, &a); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	switch c.Call {
	case "status":
		return expectOne(client.Status(ctx))
	case "get_openapi":
		return expectOne(client.OpenAPI(ctx))
	case "get_metrics":
		return expectOne(client.Metrics(ctx))
	case "inspect_run_evidence":
		return expectOne(client.InspectRunEvidence(ctx, []byte(a.Report)))
	case "get_run":
		return expectOne(client.Run(ctx, a.RunID))
	case "get_run_attempts":
		return expectOne(client.RunAttempts(ctx, a.RunID))
	case "get_run_evidence":
		return expectOne(client.RunEvidence(ctx, a.RunID))
	case "get_work_unit":
		return expectOne(client.WorkUnit(ctx, a.WorkUnitID))
	case "get_project":
		return expectOne(client.Project(ctx, a.ProjectID))
	case "get_connection":
		return expectOne(client.Connection(ctx, a.ConnectionID))
	case "list_runs":
		return expectPage(client.ListRuns(ctx, controltower.RunQuery{Limit: limitOf(a), Cursor: a.Cursor, State: a.State, ProjectID: a.ProjectID}))
	case "list_work_units":
		return expectPage(client.ListWorkUnits(ctx, controltower.WorkUnitQuery{Limit: limitOf(a), Cursor: a.Cursor, ProjectID: a.ProjectID}))
	case "list_connections":
		return expectPage(client.ListConnections(ctx, controltower.ConnectionQuery{Limit: limitOf(a), Cursor: a.Cursor}))
	case "list_events":
		return expectPage(client.ListEvents(ctx, controltower.EventQuery{EventFilter: filterOf(a), Limit: limitOf(a), Cursor: a.Cursor}))
	case "iter_runs":
		return iteratePages(ctx, client, a)
	case "stream_events":
		return readStream(ctx, client, a)
	}
	t.Fatalf("the suite has no call %q", c.Call)
	return expectation{}, nil
}

// limitOf converts a limit of the suite: this client's 0 is the default, so the
// suite's 0 becomes a value below it.
func limitOf(a arguments) int {
	switch {
	case a.Limit == nil:
		return 0
	case *a.Limit == 0:
		return -1
	}
	return *a.Limit
}

func filterOf(a arguments) controltower.EventFilter {
	f := controltower.EventFilter{ProjectID: a.ProjectID, RunID: a.RunID, WorkUnitID: a.WorkUnitID, EventType: a.EventType}
	for name, value := range a.Filters {
		*map[string]*string{"project_id": &f.ProjectID, "run_id": &f.RunID, "work_unit_id": &f.WorkUnitID, "event_type": &f.EventType}[name] = value
	}
	return f
}

func expectOne[T any](r controltower.Result[T], err error) (expectation, error) {
	if err != nil {
		return expectation{}, err
	}
	// The decoded value must be the whole document: no member may be lost.
	if got := canon.Digest(canon.MustFrom(r.Value)); got != r.Metadata.ContentDigest {
		if _, free := any(r.Value).(map[string]any); !free {
			return expectation{}, fmt.Errorf("the decoded value has digest %s", got)
		}
	}
	return expectation{RequestID: r.RequestID(), ContentDigest: canon.Digest(r.Document)}, nil
}

func expectPage[T any](r controltower.Result[controltower.ListPage[T]], err error) (expectation, error) {
	if err != nil {
		return expectation{}, err
	}
	e := expectation{RequestID: r.RequestID(), ContentDigest: canon.Digest(r.Document), Limit: r.Value.Limit}
	if r.Value.NextCursor != "" {
		e.NextCursor = &r.Value.NextCursor
	}
	for _, item := range r.Value.Items {
		o := canon.MustFrom(item).(*canon.Object)
		e.Items = append(e.Items, idOf(o))
	}
	return e, nil
}

func idOf(o *canon.Object) string {
	for _, key := range []string{"event_id", "run_id", "id"} {
		if id, ok := o.Get(key); ok {
			return id.(string)
		}
	}
	return ""
}

func iteratePages(ctx context.Context, client *controltower.Client, a arguments) (expectation, error) {
	var e expectation
	for r, err := range client.Runs(ctx, controltower.RunsQuery{State: a.State, ProjectID: a.ProjectID, PageSize: a.PageSize, MaxItems: a.MaxItems}) {
		if err != nil {
			return e, err
		}
		if idOf(r.Document) != r.Value.RunID {
			return e, fmt.Errorf("document and value of %s are of two runs", r.Value.RunID)
		}
		e.Items = append(e.Items, r.Value.RunID)
	}
	return e, nil
}

func readStream(ctx context.Context, client *controltower.Client, a arguments) (expectation, error) {
	var e expectation
	var state controltower.StreamState
	var fault error
	for event, err := range client.Stream(ctx, controltower.StreamOptions{
		IdleTimeout: secondsToDuration(a.IdleTimeout), LastEventID: a.LastEventID, Filter: filterOf(a), MaxEvents: a.MaxEvents,
		MaxDuration: secondsToDuration(a.MaxSeconds), MaxFrameBytes: a.MaxFrameBytes, State: &state,
	}) {
		if err != nil {
			fault = err
			break
		}
		if event.Sequence != event.Envelope.Sequence || event.EventType != event.Envelope.EventType || event.Sequence != state.LastEventID {
			return e, fmt.Errorf("event %+v is not of one piece", event)
		}
		e.Events = append(e.Events, event.Sequence)
	}
	e.EndReason = state.EndReason
	if fault == nil {
		e.RequestID = state.RequestID
	}
	if state.LastEventID != 0 || slices.Contains(e.Events, 0) {
		e.LastEventID = &state.LastEventID
	}
	return e, fault
}
