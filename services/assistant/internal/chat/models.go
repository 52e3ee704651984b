package chat

import (
	"strconv"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

// Models are the documents of /v1/models: one model under two ids, the second for the strict profile.
type Models struct {
	name    string
	created time.Time
}

// NewModels returns the documents for the service's model name; created is when the service began to offer it.
func NewModels(name string, created time.Time) Models { return Models{name, created} }

// List returns the document of all models.
func (m Models) List() []byte {
	out := m.appendModel([]byte(`{"object":"list","data":[`), m.name)
	out = m.appendModel(append(out, ','), m.name+strictSuffix)
	return append(out, "]}"...)
}

// Get returns the document of one model. The error is a problem: 404.
func (m Models) Get(id string) ([]byte, error) {
	if id != m.name && id != m.name+strictSuffix {
		return nil, fault.ModelNotFound.New("There is no such model; /v1/models lists them.")
	}
	return m.appendModel(nil, id), nil
}

func (m Models) appendModel(dst []byte, id string) []byte {
	dst = appendString(append(dst, `{"id":`...), id)
	dst = strconv.AppendInt(append(dst, `,"object":"model","created":`...), m.created.Unix(), 10)
	return append(dst, `,"owned_by":"mlp-platform"}`...)
}
