package model

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/mlp-platform/platform/services/assistant/internal/mcpclient"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Tools that are not operations. The last three are called only on the model's behalf.
const (
	toolDiagnose  = "diagnose"
	toolEarlier   = "earlier_messages"
	toolDecisions = "decisions"
	toolPage      = "page_of_the_user"
)

// toolset is the set of tools that a request offers.
type toolset struct {
	tools []openai.ChatCompletionToolUnionParam
	names []string
	size  int // bytes
	// servers maps the names of other servers' tools to the tools.
	servers map[string]mcpclient.Tool
}

// maxTools is the number of tools that endpoints accept in one request.
const maxTools = 128

// ToolServers are other servers whose tools are offered in addition to those of the cluster.
type ToolServers interface {
	// Offered returns the tools of the servers that answer now, in a stable order.
	Offered() []mcpclient.Tool
}

func newToolset(writes bool, absent []operation.Verb) (toolset, error) {
	s := toolset{}
	namespace := json.RawMessage(`{"type":"object","properties":{"namespace":{"type":"string","description":"Left out: all."}},"additionalProperties":false}`)
	if err := s.add(toolDiagnose, "Match the playbooks: what is wrong in a namespace, with evidence and fixes.", namespace); err != nil {
		return s, err
	}
	for _, v := range operation.Verbs() {
		if v.Writes() && !writes || slices.Contains(absent, v) {
			continue
		}
		about := operation.About(v)
		if v.Writes() {
			about += " Proposes only: a person decides."
		}
		if err := s.add(string(v), about, operation.Schema(v)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// withServers returns a toolset with those tools of other servers that fit below a size in bytes, and the number that
// did not.
func (s toolset) withServers(tools []mcpclient.Tool, size int) (_ toolset, left int) {
	s.tools, s.names, s.servers = slices.Clone(s.tools), slices.Clone(s.names), map[string]mcpclient.Tool{}
	for _, t := range tools {
		if len(s.tools) >= maxTools || s.size+len(t.Name)+len(t.About)+len(t.Schema) > size || s.add(t.Name, t.About, t.Schema) != nil {
			left++
			continue
		}
		s.servers[t.Name] = t
	}
	return s, left
}

func (s *toolset) add(name, about string, schema json.RawMessage) error {
	var parameters shared.FunctionParameters
	if err := json.Unmarshal(schema, &parameters); err != nil {
		return fmt.Errorf("schema of the tool %s: %w", name, err)
	}
	s.tools = append(s.tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: name, Description: param.NewOpt(about), Parameters: parameters,
	}))
	s.names = append(s.names, name)
	s.size += len(name) + len(about) + len(schema) + 64
	return nil
}
