// Package scripttest writes scripts of the scripted model in few words, for tests.
package scripttest

import (
	"strings"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
)

// Always is a script of one conversation that every message matches.
func Always(steps ...scriptedmodel.Step) scriptedmodel.Script {
	return scriptedmodel.Script{Conversations: []scriptedmodel.Conversation{{Steps: steps}}}
}

// Say is a step that answers with a text, one word per token.
func Say(text string) scriptedmodel.Step {
	return scriptedmodel.Step{Answer: strings.SplitAfter(text, " ")}
}

// Ask is a step that calls one tool.
func Ask(name, arguments string) scriptedmodel.Step {
	return scriptedmodel.Step{Calls: []scriptedmodel.Call{{Name: name, Arguments: arguments}}}
}
