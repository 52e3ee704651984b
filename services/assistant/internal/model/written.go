package model

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
)

// Small models write a tool call as text if their template, or their training, has no form for one: as the object that
// <tool_call> elements hold (https://huggingface.co/docs/transformers/chat_extras), bare or in a fence. An answer that
// consists only of such calls is treated as the calls. They have the same rights as any call.
var (
	wrapperExpr  = regexp.MustCompile("(?m)^[ \t]*(?:```[a-z]*|</?tool_call>)[ \t]*$|</?tool_call>")
	mayBegin     = regexp.MustCompile("^\\s*(?:<|```|\\{)")
	mayBeWritten = regexp.MustCompile("^\\s*(?:<tool_call>\\s*)?(?:```[a-z]*\\s*)?\\{\\s*\"(?:name|tool|function|arguments|parameters)\"")
)

const (
	maxWritten = 16 << 10 // bytes of such a text
	telling    = 64       // bytes that suffice to recognize a call
)

// mayBeCall reports whether the beginning of a text may turn out to be calls.
func mayBeCall(text string) bool {
	return len(text) < telling && mayBegin.MatchString(text) || len(text) <= maxWritten && mayBeWritten.MatchString(text)
}

// writtenCalls returns the tool calls that a text consists of; nil if it contains anything else.
func writtenCalls(text string) []*heard {
	if !mayBeCall(text) {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(wrapperExpr.ReplaceAllString(text, "")))
	var calls []*heard
	for len(calls) < maxHeard {
		var call map[string]json.RawMessage
		switch err := d.Decode(&call); {
		case errors.Is(err, io.EOF):
			return calls
		case err != nil || len(call) != 2:
			return nil
		}
		c := &heard{index: int64(len(calls))}
		given := false
		for key, value := range call {
			switch key {
			case "name", "tool", "function":
				if json.Unmarshal(value, &c.name) != nil {
					return nil
				}
			case "arguments", "parameters":
				var quoted string
				if json.Unmarshal(value, &quoted) == nil {
					value = json.RawMessage(quoted)
				}
				c.arguments.Write(value)
				given = true
			}
		}
		if c.name == "" || !given {
			return nil
		}
		calls = append(calls, c)
	}
	return calls
}
