package model

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Tools that are no operations. The last three are called for the model only.
const (
	toolDiagnose  = "diagnose"
	toolEarlier   = "earlier_messages"
	toolDecisions = "decisions"
	toolPage      = "page_of_the_user"
)

// toolset is what a request offers.
type toolset struct {
	tools []openai.ChatCompletionToolUnionParam
	names []string
	size  int // bytes
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
