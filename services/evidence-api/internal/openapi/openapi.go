// Package openapi generates the OpenAPI document from the route table, the error catalogue
// and the schemas, so that it cannot contradict them.
package openapi

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/negotiate"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

type object = map[string]any

// Kind takes the place of a document's kind.
const Kind = "svc-openapi"

const description = "Reads of one evidence store, and the inspection of a report, for tools on the same machine. " +
	"Nothing that is sent changes anything. One request a connection. HEAD is answered wherever GET is, but on the event stream. " +
	"An id in a path is everything between its neighbours, decoded once: \"/\" and \":\" need no escape. " +
	"A safe X-Request-ID and a valid traceparent (version 00) are echoed."

// Snapshot returns the committed document, indented and without a build version.
func Snapshot() ([]byte, error) {
	text, err := Document("snapshot")
	if err != nil {
		return nil, err
	}
	v, err := canon.Parse(text)
	if err != nil {
		return nil, err
	}
	return canon.P(v)
}

// Document returns the document of a build in form C1.
func Document(version string) ([]byte, error) {
	c := &components{made: map[string]canon.Value{}, seen: map[string]bool{}}
	c.ref("api-error")
	paths := object{}
	for _, o := range route.Table() {
		op, err := describeOperation(c, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.ID, err)
		}
		paths[o.Path] = object{strings.ToLower(o.Method): op}
	}
	answers := shareResponses(paths)
	made, err := c.all()
	if err != nil {
		return nil, err
	}
	return canon.C1(object{
		"openapi":              "3.1.0",
		"x-svc-kind":           Kind,
		"x-svc-schema-version": spine.SchemaVersion,
		"info":                 object{"title": "Evidence API", "version": version, "description": description},
		"servers":              []any{object{"url": "/"}},
		"security":             []any{object{"LocalSessionToken": []any{}}},
		"paths":                paths,
		"components": object{
			"schemas":   made,
			"headers":   describeHeaders(),
			"responses": answers,
			"securitySchemes": object{"LocalSessionToken": object{
				"type": "apiKey", "in": "header", "name": loopback.TokenHeader,
				"description": "The token that the server was started with."}},
		},
	})
}

func describeOperation(c *components, o *route.Op) (object, error) {
	answer, err := describeSuccess(c, o)
	if err != nil {
		return nil, err
	}
	op := object{
		"operationId": o.ID,
		"summary":     o.Summary,
		"responses":   describeFailures(o, object{"200": answer}),
	}
	if o.Open {
		op["security"] = []any{}
	}
	if p := describeParameters(o); len(p) > 0 {
		op["parameters"] = p
	}
	if o.ID == route.Inspect {
		op["requestBody"] = object{"required": true, "content": jsonContent(c.ref("run-evidence-report"))}
	}
	return op, nil
}

// describeSuccess describes the answer to a valid request.
func describeSuccess(c *components, o *route.Op) (object, error) {
	r := object{"description": o.Summary + ".", "headers": headerRefs(o.Text == "")}
	switch {
	case o.Text != "":
		r["content"] = object{o.Text: object{"schema": object{"type": "string"}}}
	case o.Item != "":
		page, err := c.list(o.Item)
		if err != nil {
			return nil, err
		}
		r["content"] = jsonContent(page)
	case o.Schema != "":
		r["content"] = jsonContent(c.ref(o.Schema))
	default:
		r["content"] = jsonContent(object{"type": "object", "required": []any{"openapi", "info", "paths"}})
	}
	return r, nil
}

// describeFailures adds the answers of the endpoint's error codes, by status, and those of
// the parser, which are not envelopes.
func describeFailures(o *route.Op, responses object) object {
	byStatus := map[int][]catalogue.Code{}
	for _, code := range o.AllCodes() {
		e, _ := catalogue.Lookup(code)
		byStatus[e.Status] = append(byStatus[e.Status], code)
	}
	for status, codes := range byStatus {
		h := headerRefs(true)
		var says []string
		for _, code := range codes {
			e, _ := catalogue.Lookup(code)
			says = append(says, fmt.Sprintf("`%s`: %s", code, e.When))
			if e.Retryable {
				h["Retry-After"] = headerRef("RetryAfter")
			}
			if status == 405 {
				h["Allow"] = object{"$ref": "#/components/headers/Allow"}
			}
		}
		responses[strconv.Itoa(status)] = object{
			"description": strings.Join(says, "; ") + ".",
			"headers":     h,
			"content":     jsonContent(object{"$ref": "#/components/schemas/ApiError"}),
			"x-svc-codes": codes,
		}
	}
	for status, says := range map[string]string{
		"400": "not HTTP", "414": "The request line is too long.", "431": "A header line is too long, or there are too many.",
		"505": "The major version of HTTP is not 1.",
	} {
		plain := object{"schema": object{"type": "string"}}
		if r, ok := responses[status].(object); ok {
			r["content"].(object)["text/plain"] = plain
			delete(r, "headers") // the parser's own answer has none of them
			continue
		}
		responses[status] = object{"description": says, "content": object{"text/plain": plain}}
	}
	return responses
}

// shareResponses moves equal answers into components, named after their codes.
func shareResponses(paths object) object {
	all := object{}
	for _, item := range paths {
		for _, op := range item.(object) {
			responses := op.(object)["responses"].(object)
			for status, r := range responses {
				name := "Parser" + status
				if codes, ok := r.(object)["x-svc-codes"].([]catalogue.Code); ok {
					name = ""
					for _, c := range codes {
						name += componentName(string(c))
					}
				} else if status == "200" {
					continue
				}
				all[name] = r
				responses[status] = object{"$ref": "#/components/responses/" + name}
			}
		}
	}
	return all
}

func jsonContent(schema any) object {
	return object{negotiate.JSON: object{"schema": schema}, negotiate.Vendor: object{"schema": schema}}
}

var pathName = regexp.MustCompile(`\{([a-z_]+)\}`)

func describeParameters(o *route.Op) []any {
	var out []any
	for _, m := range pathName.FindAllStringSubmatch(o.Path, -1) {
		schema := object{"type": "string", "pattern": `^[A-Za-z0-9][A-Za-z0-9._:/-]{0,191}$`}
		switch m[1] {
		case "event_id":
			schema["pattern"] = `^evt-[0-9]{12,18}$`
		case "connection_id":
			schema["pattern"] = `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`
		}
		out = append(out, object{"name": m[1], "in": "path", "required": true, "schema": schema})
	}
	for _, name := range o.Query {
		p := object{"name": name, "in": "query", "schema": querySchema(name)}
		if says := meaning[name]; says != "" {
			p["description"] = says
		}
		out = append(out, p)
	}
	if o.Stream {
		out = append(out, object{"name": "Last-Event-ID", "in": "header", "schema": object{"type": "string", "pattern": `^[0-9]{1,18}$`},
			"description": "Events with a greater sequence come first; 0 is the whole log. Without it the stream begins at its end."})
	}
	return out
}

var meaning = map[string]string{
	route.Cursor: "The next_cursor of the page before, as it was given.",
	route.Since:  "The size that the log had at an earlier checkpoint.",
}

func querySchema(name string) object {
	switch name {
	case route.Limit:
		return object{"type": "integer", "minimum": 1, "maximum": store.MaxLimit, "default": store.DefaultLimit}
	case route.Since:
		return object{"type": "integer", "minimum": 1, "maximum": int64(spine.MaxSequence)}
	case route.State:
		return object{"type": "string", "enum": spine.States()}
	case route.EventType:
		return object{"type": "string", "enum": spine.EventTypes()}
	case route.Cursor:
		return object{"type": "string", "minLength": 1, "maxLength": 1024}
	}
	return object{"type": "string", "pattern": `\S`}
}

// describeHeaders returns the headers that clients use; the rest restrict browsers.
func describeHeaders() object {
	text := func(says, pattern string) object {
		return object{"description": says, "required": true, "schema": object{"type": "string", "pattern": pattern}}
	}
	return object{
		"RequestID":      text("Names this answer; the caller's if it was safe.", `^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`),
		"ContentDigest":  text("Digest of the document in canonical form, which is the body.", `^sha256:[0-9a-f]{64}$`),
		"ETag":           text("The same digest. Conditional requests are not answered.", `^"[0-9a-f]{64}"$`),
		"Service":        text("Who answered.", `^[!-~]{1,128}$`),
		"ServiceVersion": text("Its build.", `^[!-~]{1,128}$`),
		"APIVersion":     text("The version in the URL.", `^v1$`),
		"ReadOnly":       text("Nothing is ever written.", `^true$`),
		"Allow":          text("The methods that the path takes.", `^(GET, HEAD|GET|POST)$`),
		"RetryAfter":     object{"description": "Seconds to wait.", "schema": object{"type": "integer", "const": catalogue.RetryAfterSeconds}},
	}
}

func headerRef(name string) object { return object{"$ref": "#/components/headers/" + name} }

// headerRefs returns the headers of an answer; a document has two more.
func headerRefs(document bool) object {
	names := []string{"X-Request-ID", "RequestID", "X-SVC-Service", "Service", "X-SVC-Service-Version", "ServiceVersion",
		"X-SVC-API-Version", "APIVersion", "X-SVC-Read-Only", "ReadOnly"}
	if document {
		names = append(names, "X-SVC-Content-Digest", "ContentDigest", "ETag", "ETag")
	}
	out := object{}
	for pair := range slices.Chunk(names, 2) {
		out[pair[0]] = object{"$ref": "#/components/headers/" + pair[1]}
	}
	return out
}
