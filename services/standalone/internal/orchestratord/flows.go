package orchestratord

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

type flowDoc struct {
	ID      uuid.UUID       `json:"id"`
	Created time.Time       `json:"created"`
	Updated time.Time       `json:"updated"`
	Name    string          `json:"name"`
	Tags    []string        `json:"tags"`
	Labels  json.RawMessage `json:"labels"`
}

func flowOf(f store.Flow) flowDoc {
	return flowDoc{f.ID, f.Created.UTC(), f.Updated.UTC(), f.Name, f.Tags, f.Labels}
}

// checkName refuses names that cannot be part of a path, as a real server does.
func checkName(name string) error {
	switch {
	case name == "":
		return invalidMember("name", "Field required")
	case strings.ContainsAny(name, "/%&><"):
		return invalidMember("name", "Name %q contains an invalid character. Must not contain any of: '/', '%%', '&', '>', '<'", name)
	case utf8.RuneCountInString(name) > 255:
		return invalidMember("name", "must be at most 255 characters")
	}
	return nil
}

// object is a JSON object kept as it came; absent and null mean {}.
type object struct{ raw json.RawMessage }

func (o *object) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if b[0] != '{' {
		return invalidMember("", "expected an object, found %.40s", b)
	}
	o.raw = append(json.RawMessage(nil), b...)
	return nil
}

func (o object) json() json.RawMessage {
	if o.raw == nil {
		return json.RawMessage("{}")
	}
	return o.raw
}

func orEmpty(tags []string) []string {
	if tags == nil {
		return []string{}
	}
	return tags
}

func (s *Server) createFlow(r *http.Request) (any, error) {
	var in struct {
		Name   string   `json:"name"`
		Tags   []string `json:"tags"`
		Labels object   `json:"labels"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if err := checkName(in.Name); err != nil {
		return nil, err
	}
	n, err := s.q.InsertFlow(r.Context(), store.InsertFlowParams{
		ID: newID(), Now: s.now(), Name: in.Name, Tags: orEmpty(in.Tags), Labels: in.Labels.json(),
	})
	if err != nil {
		return nil, err
	}
	f, err := s.q.FlowByName(r.Context(), in.Name)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return flowOf(f), nil
	}
	return answer{http.StatusCreated, flowOf(f)}, nil
}

func (s *Server) readFlow(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	f, err := s.q.FlowByID(r.Context(), id)
	if err != nil {
		return nil, absentAsNotFound(err, "Flow")
	}
	return flowOf(f), nil
}

func (s *Server) readFlowByName(r *http.Request) (any, error) {
	f, err := s.q.FlowByName(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, absentAsNotFound(err, "Flow")
	}
	return flowOf(f), nil
}

func (s *Server) filterFlows(r *http.Request) (any, error) {
	var in struct {
		page
		Flows       *namedFilter `json:"flows"`
		Sort        string       `json:"sort"`
		FlowRuns    notOffered   `json:"flow_runs"`
		TaskRuns    notOffered   `json:"task_runs"`
		Deployments notOffered   `json:"deployments"`
		WorkPools   notOffered   `json:"work_pools"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	limit, offset, err := in.bounds()
	if err != nil {
		return nil, err
	}
	if err := checkSort(in.Sort); err != nil {
		return nil, err
	}
	arg := store.FlowsParams{Ids: []uuid.UUID{}, Names: []string{}, Sort: in.Sort, Max: int32(limit), Skip: int32(offset)}
	if f := in.Flows; f != nil {
		if f.matchesNothing() {
			return []flowDoc{}, nil
		}
		if arg.Ids, arg.Names, err = f.lists(); err != nil {
			return nil, err
		}
	}
	flows, err := s.q.Flows(r.Context(), arg)
	if err != nil {
		return nil, err
	}
	out := make([]flowDoc, 0, len(flows))
	for _, f := range flows {
		out = append(out, flowOf(f))
	}
	return out, nil
}

// checkSort knows the orders of flows and of deployments; absent, they are by name.
func checkSort(sort string) error {
	switch sort {
	case "", "NAME_ASC", "NAME_DESC", "CREATED_DESC", "UPDATED_DESC":
		return nil
	}
	return invalidMember("sort", "Input should be 'CREATED_DESC', 'UPDATED_DESC', 'NAME_ASC' or 'NAME_DESC'")
}

// deleteFlow removes a flow that no deployment needs, with its runs.
func (s *Server) deleteFlow(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	err = s.tx(r.Context(), func(q *store.Queries) error {
		used, err := q.DeploymentIDs(r.Context(), store.DeploymentIDsParams{FlowIds: []uuid.UUID{id}, Ids: []uuid.UUID{},
			Names: []string{}, FlowNames: []string{}, Tags: []string{}, Pools: []string{}, Max: 1})
		if err != nil {
			return err
		}
		if len(used) > 0 {
			return refuseRequest(http.StatusConflict, "The flow has deployments; delete those first.")
		}
		n, err := q.DeleteFlow(r.Context(), id)
		if err == nil && n == 0 {
			err = notFound("Flow")
		}
		return err
	})
	return answer{status: http.StatusNoContent}, err
}
