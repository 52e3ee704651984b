// Package apitest checks a service's answers in tests against its OpenAPI document.
package apitest

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// Document is an OpenAPI document. It is read once, at the first answer, and is safe
// for concurrent use.
type Document struct {
	router func() (routers.Router, error)
}

// Answer is a response to check.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// undocumented are the pages that show the document itself.
var undocumented = []string{"/docs", "/redoc", "/openapi.json"}

// New takes a document as YAML or JSON. A fault in it is an error of Conforms.
func New(raw []byte) *Document {
	return &Document{router: sync.OnceValues(func() (routers.Router, error) {
		doc, err := openapi3.NewLoader().LoadFromData(raw)
		if err != nil {
			return nil, err
		}
		if err := doc.Validate(context.Background()); err != nil {
			return nil, err
		}
		for _, schema := range doc.Components.Schemas {
			closeSchema(schema.Value)
		}
		return gorillamux.NewRouter(doc)
	})}
}

// closeSchema forbids members that the document does not name, unless it allows others
// explicitly.
func closeSchema(s *openapi3.Schema) {
	if s.Type.Is("object") && len(s.Properties) > 0 && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
}

// Conforms reports whether an answer is one that the document promises: its status, its
// content type and, of JSON, each member.
func (d *Document) Conforms(req *http.Request, a Answer) error {
	router, err := d.router()
	if err != nil {
		return fmt.Errorf("the document: %w", err)
	}
	asked := &http.Request{Method: req.Method, URL: &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath}, Header: req.Header}
	route, params, err := router.FindRoute(asked)
	switch {
	case err == nil:
	case req.Method == http.MethodHead && len(a.Body) == 0: // GET without its body, which is in the document
		return nil
	case slices.Contains(undocumented, req.URL.Path):
		return nil
	case a.Status >= 400 && a.Status < 500: // not in the document, and not there; or no path that any router takes
		return nil
	default:
		return fmt.Errorf("%s %s answers %d and is not in the document", req.Method, req.URL.Path, a.Status)
	}
	promised := route.Operation.Responses.Status(a.Status)
	if promised == nil {
		promised = route.Operation.Responses.Default()
	}
	if promised == nil {
		return fmt.Errorf("%s %s: the document does not know status %d", req.Method, route.Path, a.Status)
	}
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")) // an invalid type becomes "", which no document promises
	if content := promised.Value.Content; len(content) > 0 && content.Get(kind) == nil || len(content) == 0 && len(a.Body) > 0 {
		return fmt.Errorf("%s %s: the document does not promise %q for status %d", req.Method, route.Path, kind, a.Status)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route},
		Status:                 a.Status,
		Header:                 a.Header,
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: !strings.HasSuffix(kind, "/json") && !strings.HasSuffix(kind, "+json"),
			SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.EnableFormatValidation()},
		},
	}
	if err := openapi3filter.ValidateResponse(context.Background(), input.SetBodyBytes(a.Body)); err != nil {
		return fmt.Errorf("%s %s answers %d, unlike the document: %w", req.Method, route.Path, a.Status, err)
	}
	return nil
}
