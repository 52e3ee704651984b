package orchestratord

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

const maxVariable = 5000 // bytes of a value, as the interface has it

var variableName = regexp.MustCompile(`^[a-z0-9_]{1,255}$`)

type variableDoc struct {
	ID      uuid.UUID       `json:"id"`
	Created time.Time       `json:"created"`
	Updated time.Time       `json:"updated"`
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
	Tags    []string        `json:"tags"`
}

func variableOf(v store.Variable) variableDoc {
	return variableDoc{v.ID, v.Created.UTC(), v.Updated.UTC(), v.Name, v.Value, v.Tags}
}

// variableIn creates or changes a variable; absent members stay as they are.
type variableIn struct {
	Name  *string         `json:"name"`
	Value json.RawMessage `json:"value"`
	Tags  []string        `json:"tags"`
}

func (in variableIn) check() error {
	if in.Name != nil && !variableName.MatchString(*in.Name) {
		return invalidMember("name", "Variable name must only contain lowercase letters, numbers, and underscores, and at most 255 of them.")
	}
	var compact bytes.Buffer
	if len(in.Value) > 0 {
		if err := json.Compact(&compact, in.Value); err != nil {
			return err
		}
	}
	if compact.Len() > maxVariable {
		return invalidMember("value", "Variable value must be less than %d characters.", maxVariable)
	}
	return nil
}

func (s *Server) createVariable(r *http.Request) (any, error) {
	var in variableIn
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if in.Name == nil {
		return nil, invalidMember("name", "Field required")
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	n, err := s.q.InsertVariable(r.Context(), store.InsertVariableParams{ID: newID(), Now: s.now(), Name: *in.Name,
		Value: orRaw(in.Value, json.RawMessage("null")), Tags: orEmpty(in.Tags)})
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, refuseRequest(http.StatusConflict, "A variable with the name %q already exists.", *in.Name)
	}
	v, err := s.q.VariableByName(r.Context(), *in.Name)
	return answer{http.StatusCreated, variableOf(v)}, err
}

func (s *Server) readVariable(r *http.Request) (any, error) {
	v, err := s.q.VariableByName(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, absentAsNotFound(err, "Variable")
	}
	return variableOf(v), nil
}

func (s *Server) filterVariables(r *http.Request) (any, error) {
	var in struct {
		page
		Variables *struct {
			Name *nameFilter `json:"name"`
		} `json:"variables"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	limit, offset, err := in.bounds()
	if err != nil {
		return nil, err
	}
	arg := store.VariablesParams{Names: []string{}, Max: int32(limit), Skip: int32(offset)}
	if in.Variables != nil {
		named := namedFilter{Name: in.Variables.Name}
		if named.matchesNothing() {
			return []variableDoc{}, nil
		}
		if _, arg.Names, err = named.lists(); err != nil {
			return nil, err
		}
	}
	rows, err := s.q.Variables(r.Context(), arg)
	out := make([]variableDoc, 0, len(rows))
	for _, v := range rows {
		out = append(out, variableOf(v))
	}
	return out, err
}

func (s *Server) updateVariable(r *http.Request) (any, error) {
	var in variableIn
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	n, err := s.q.UpdateVariable(r.Context(), store.UpdateVariableParams{Name: r.PathValue("name"), NewName: in.Name, Value: in.Value, Tags: in.Tags, Now: s.now()})
	if postgres.IsUnique(err, "variable_name_key") {
		return nil, refuseRequest(http.StatusConflict, "A variable with the name %q already exists.", *in.Name)
	}
	if err == nil && n == 0 {
		err = notFound("Variable")
	}
	return answer{status: http.StatusNoContent}, err
}

func (s *Server) deleteVariable(r *http.Request) (any, error) {
	n, err := s.q.DeleteVariable(r.Context(), r.PathValue("name"))
	if err == nil && n == 0 {
		err = notFound("Variable")
	}
	return answer{status: http.StatusNoContent}, err
}
