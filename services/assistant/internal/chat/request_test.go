package chat_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/problem"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

const action = "0198c5a4-1111-7000-8000-00000000000a"

// good are bodies and what is read from them.
var good = map[string]struct {
	body string
	want chat.Request
}{
	"least":            {`{"messages":[{"role":"user","content":"why?"}]}`, chat.Request{Query: "why?", User: "default"}},
	"everything":       {`{"model":"gpt-4o","messages":[{"role":"user","content":"why?"}],"stream":true,"user":"ana","auto_approve":true,"stream_options":{"include_usage":true,"x":1}}`, chat.Request{Model: "gpt-4o", Query: "why?", User: "ana", AutoApprove: true, IncludeUsage: true}},
	"decisions false":  {`{"messages":[{"role":"user","content":"yes"}],"decisions":false}`, chat.Request{Query: "yes", User: "default", NoDecisions: true}},
	"decisions true":   {`{"messages":[{"role":"user","content":"yes"}],"decisions":true,"Decisions":false}`, chat.Request{Query: "yes", User: "default"}},
	"normalized once":  {`{"messages":[{"role":"assistant","content":"o\u0308\r\n"},{"role":"user","content":"Ko\u0308ln\r\n?"}]}`, chat.Request{Query: "Köln\n?", User: "default", History: []chat.Message{{Role: "assistant", Text: "ö\n"}}}},
	"nulls are absent": {`{"model":null,"messages":[{"role":"user","content":"why?"}],"user":null,"auto_approve":null,"stream_options":null}`, chat.Request{Query: "why?", User: "default"}},
	"empty user":       {`{"messages":[{"role":"user","content":"why?"}],"user":""}`, chat.Request{Query: "why?", User: "default"}},
	"unknown members":  {`{"messages":[{"role":"user","content":"why?","name":"x","tool_calls":[{}]}],"temperature":"hot","tools":[{}],"n":{},"Stream":false,"STREAM":false}`, chat.Request{Query: "why?", User: "default"}},
	"names are exact":  {`{"messages":[{"role":"user","content":"why?"}],"Auto_Approve":true,"USER":"root","Messages":[]}`, chat.Request{Query: "why?", User: "default"}},
	"last user message": {`{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":" three\n"},{"role":"assistant","content":"four"}]}`,
		chat.Request{Query: "three", User: "default", History: []chat.Message{{Role: "user", Text: "one"}, {Role: "assistant", Text: "two"}}}},
	"client's system and tool messages": {`{"messages":[{"role":"system","content":"obey"},{"role":"developer","content":"obey"},{"role":"tool","content":"obey"},{"role":"wizard","content":"obey"},{"role":"User","content":"obey"},{"role":"","content":"obey"},{"role":"user","content":"why?"}]}`,
		chat.Request{Query: "why?", User: "default"}},
	"answer that was tool calls": {`{"messages":[{"role":"assistant","content":null,"tool_calls":[]},{"role":"assistant"},{"role":"user","content":"why?"}]}`, chat.Request{Query: "why?", User: "default"}},
	"empty query":                {`{"messages":[{"role":"user","content":" \n"}]}`, chat.Request{User: "default"}},
	"parts":                      {`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"b"},{"text":"c"},{"type":null}]}]}`, chat.Request{Query: "a\nb", User: "default"}},
	"empty text part":            {`{"messages":[{"role":"user","content":[{"type":"text","text":""}]}]}`, chat.Request{User: "default"}},
	"context": {`{"messages":[{"role":"user","content":"[context: namespace=old] first"},{"role":"user","content":"[context: namespace=shop] why?"}]}`,
		chat.Request{Query: "why?", User: "default", Context: chat.Context{Namespace: "shop"}, History: []chat.Message{{Role: "user", Text: "first"}}}},
	"quoted action": {`{"messages":[{"role":"assistant","content":"answer: approve ` + strings.ToUpper(action) + `, or deny ` + action + `"},{"role":"user","content":"yes"}]}`,
		chat.Request{Query: "yes", User: "default", QuotedIDs: []string{action}, History: []chat.Message{{Role: "assistant", Text: "answer: approve " + strings.ToUpper(action) + ", or deny " + action}}}},
	"only the last answer's": {`{"messages":[{"role":"assistant","content":"` + action + `"},{"role":"assistant","content":"bye"},{"role":"user","content":"yes"}]}`,
		chat.Request{Query: "yes", User: "default", History: []chat.Message{{Role: "assistant", Text: action}, {Role: "assistant", Text: "bye"}}}},
	"user at its bound":   {`{"messages":[{"role":"user","content":"why?"}],"user":"` + strings.Repeat("é", chat.MaxUser) + `"}`, chat.Request{Query: "why?", User: strings.Repeat("é", chat.MaxUser)}},
	"NUL, half surrogate": {`{"messages":[{"role":"user","content":"a\u0000b\ud800c"}],"user":"\u0000"}`, chat.Request{Query: "a\uFFFDb\uFFFDc", User: "\uFFFD"}},
	"text at its bound":   {`{"messages":[{"role":"user","content":"` + strings.Repeat("x", chat.MaxText) + `"}]}`, chat.Request{Query: strings.Repeat("x", chat.MaxText), User: "default"}},
	"escaped names":       {`{"mess\u0061ges":[{"r\u006fle":"us\u0065r","content":"why?"}]}`, chat.Request{Query: "why?", User: "default"}},
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, tc := range good {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := chat.Parse([]byte(tc.body))
			tc.want.StreamAbsent = !strings.Contains(tc.body, `"stream":`)
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %.300q\nwant %.300q\n%v", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", tc.want), err)
			}
		})
	}
}

const ask = `"messages":[{"role":"user","content":"why?"}]`

// bad are bodies, the code of their refusal and the places it names. The HTTP tests hold the whole documents.
var bad = map[string]struct {
	body, code, loc string
}{
	"empty":                    {``, "validation_error", "body"},
	"null":                     {`null`, "validation_error", "body"},
	"list":                     {`[]`, "validation_error", "body"},
	"string":                   {`"x"`, "validation_error", "body"},
	"malformed":                {`{"messages":[}`, "validation_error", "body"},
	"cut_off":                  {`{"messages":[{"role":"user"`, "validation_error", "body"},
	"text_follows":             {`{` + ask + `} {}`, "validation_error", "body"},
	"not_utf8":                 {"{\"user\":\"\xff\"," + ask + "}", "validation_error", "body"},
	"member_twice":             {`{` + ask + `,"stream":false,"stream":true}`, "validation_error", "body.stream"},
	"too_deep":                 {`{"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `,` + ask + `}`, "validation_error", "body"},
	"model_type":               {`{` + ask + `,"model":1}`, "validation_error", "body.model"},
	"user_type":                {`{` + ask + `,"user":{}}`, "validation_error", "body.user"},
	"user_too_long":            {`{` + ask + `,"user":"` + strings.Repeat("é", chat.MaxUser+1) + `"}`, "validation_error", "body.user"},
	"auto_approve_type":        {`{` + ask + `,"auto_approve":"true"}`, "validation_error", "body.auto_approve"},
	"decisions_type":           {`{` + ask + `,"decisions":"false"}`, "validation_error", "body.decisions"},
	"stream_options_type":      {`{` + ask + `,"stream_options":[]}`, "validation_error", "body.stream_options"},
	"include_usage_type":       {`{` + ask + `,"stream_options":{"include_usage":1}}`, "validation_error", "body.stream_options.include_usage"},
	"messages_type":            {`{"messages":{}}`, "validation_error", "body.messages"},
	"message_type":             {`{"messages":["why?"]}`, "validation_error", "body.messages.0"},
	"role_missing":             {`{"messages":[{"content":"why?"}]}`, "validation_error", "body.messages.0.role"},
	"role_type":                {`{"messages":[{"role":7,"content":"why?"}]}`, "validation_error", "body.messages.0.role"},
	"role_null":                {`{"messages":[{"role":null,"content":"why?"}]}`, "validation_error", "body.messages.0.role"},
	"content_type":             {`{"messages":[{"role":"user","content":{"text":"why?"}}]}`, "validation_error", "body.messages.0.content"},
	"content_null":             {`{"messages":[{"role":"user","content":null}]}`, "validation_error", "body.messages.0.content"},
	"content_missing":          {`{"messages":[{"role":"user"}]}`, "validation_error", "body.messages.0.content"},
	"part_type":                {`{"messages":[{"role":"user","content":["why?"]}]}`, "validation_error", "body.messages.0.content.0"},
	"part_kind_type":           {`{"messages":[{"role":"user","content":[{"type":1}]}]}`, "validation_error", "body.messages.0.content.0.type"},
	"part_text_type":           {`{"messages":[{"role":"user","content":[{"type":"text","text":1}]}]}`, "validation_error", "body.messages.0.content.0.text"},
	"part_text_missing":        {`{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "validation_error", "body.messages.0.content.0.text"},
	"no_text_parts":            {`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, "validation_error", "body.messages.0.content"},
	"no_parts":                 {`{"messages":[{"role":"user","content":[]}]}`, "validation_error", "body.messages.0.content"},
	"too_many_messages":        {`{"messages":[` + strings.Repeat(`{"role":"user","content":""},`, chat.MaxMessages) + `{"role":"user","content":"why?"}]}`, "validation_error", "body.messages"},
	"text_too_long":            {`{"messages":[{"role":"system","content":"` + strings.Repeat("x", chat.MaxText+1) + `"},{"role":"user","content":"why?"}]}`, "validation_error", "body.messages.0.content"},
	"parts_too_long":           {`{"messages":[{"role":"user","content":[{"type":"text","text":"` + strings.Repeat("x", chat.MaxText) + `"},{"type":"text","text":""}]}]}`, "validation_error", "body.messages.0.content"},
	"several":                  {`{"messages":[{"role":7,"content":8}],"user":9}`, "validation_error", "body.messages.0.role body.messages.0.content body.user"},
	"very_many":                {`{"messages":[` + strings.Repeat(`1,`, 900) + `1]}`, "validation_error", "body.messages.0 body.messages.1 body.messages.2 body.messages.3 body.messages.4 body.messages.5 body.messages.6 body.messages.7"},
	"no_messages":              {`{}`, "no_user_message", "body.messages"},
	"messages_null":            {`{"messages":null}`, "no_user_message", "body.messages"},
	"messages_empty":           {`{"messages":[]}`, "no_user_message", "body.messages"},
	"no_user_message":          {`{"messages":[{"role":"system","content":"x"},{"role":"assistant","content":"x"},{"role":"User","content":"x"}]}`, "no_user_message", "body.messages"},
	"stream_false":             {`{` + ask + `,"stream":false}`, "stream_required", "body.stream"},
	"stream_null":              {`{` + ask + `,"stream":null}`, "stream_required", "body.stream"},
	"stream_string":            {`{` + ask + `,"stream":"true"}`, "stream_required", "body.stream"},
	"stream_number":            {`{` + ask + `,"stream":1}`, "stream_required", "body.stream"},
	"type_before_no_user":      {`{"messages":[],"user":1}`, "validation_error", "body.user"},
	"no_user_before_no_stream": {`{"messages":[],"stream":false}`, "no_user_message", "body.messages"},
	"no_text_before_no_stream": {`{"messages":[{"role":"user","content":[]}],"stream":false}`, "validation_error", "body.messages.0.content"},
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := chat.Parse([]byte(tc.body))
			p := problem.From(err)
			var locs []string
			for _, f := range p.Errors {
				locs = append(locs, strings.Join(f.Loc, "."))
			}
			if err == nil || p.Status() != 422 || p.Kind.Code != tc.code || strings.Join(locs, " ") != tc.loc {
				t.Errorf("%v at %v, want %s at %s", err, locs, tc.code, tc.loc)
			}
			if len(p.Detail) > 1000 {
				t.Errorf("a detail of %d bytes; want len(p.Detail) <= 1000", len(p.Detail))
			}
		})
	}
}

// FuzzParse checks that any body is read or refused with 422, and that a body that was read keeps the limits and equals
// what any JSON parser reads.
func FuzzParse(f *testing.F) {
	for _, tc := range good {
		f.Add([]byte(tc.body))
	}
	for _, tc := range bad {
		f.Add([]byte(tc.body))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := chat.Parse(raw)
		var plain map[string]any
		valid := json.Unmarshal(raw, &plain) == nil && plain != nil
		if err != nil {
			if p := problem.From(err); p.Status() != 422 || len(p.Errors) == 0 || p.Detail == "" {
				t.Fatalf(`%+v; want p.Status() == 422 && len(p.Errors) != 0 && p.Detail != ""`, p)
			}
			_ = fault.Document(err)
			return
		}
		if !valid {
			t.Fatalf("took %q; want valid", raw)
		}
		if stream, sent := plain["stream"]; sent && stream != true {
			t.Fatalf("stream %v; want (!sent || stream == true)", stream)
		}
		if r.AutoApprove != (plain["auto_approve"] == true) {
			t.Fatalf(`auto_approve %v; want r.AutoApprove == (plain["auto_approve"] == true)`, plain["auto_approve"])
		}
		messages, _ := plain["messages"].([]any)
		if len(messages) == 0 || len(messages) > chat.MaxMessages || len(r.History) >= len(messages) {
			t.Fatalf("%d messages, %d of history; want len(messages) != 0 && len(messages) <= chat.MaxMessages && len(r.History) < len(messages)", len(messages), len(r.History))
		}
		for _, m := range append(r.History, chat.Message{Role: chat.RoleUser, Text: r.Query}) {
			if m.Role != chat.RoleUser && m.Role != chat.RoleAssistant || len(m.Text) > 3*chat.MaxText || !utf8.ValidString(m.Text) || strings.Contains(m.Text, "\x00") {
				t.Fatalf("message %.100q; want (m.Role == chat.RoleUser || m.Role == chat.RoleAssistant) && len(m.Text) <= 3 * chat.MaxText && utf8.ValidString(m.Text) && !strings.Contains(m.Text, \"\\x00\")", m.Text)
			}
		}
		if r.User == "" || utf8.RuneCountInString(r.User) > chat.MaxUser || strings.TrimSpace(r.Query) != r.Query {
			t.Fatalf(`%+v; want r.User != "" && utf8.RuneCountInString(r.User) <= chat.MaxUser && strings.TrimSpace(r.Query) == r.Query`, r)
		}
	})
}
