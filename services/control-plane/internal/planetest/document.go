package planetest

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

	"github.com/mlp-platform/platform/services/control-plane/api"
)

// document is the API's document, by which the answers of all tests are judged.
var document = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.Document)
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
})

// closeSchema makes members that the document does not name a fault, unless it
// says that there may be others.
func closeSchema(s *openapi3.Schema) {
	if s.Type.Is("object") && len(s.Properties) > 0 && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
}

// undocumented are the pages that show the document itself.
var undocumented = []string{"/docs", "/redoc", "/openapi.json"}

// conforms says whether an answer is one that the document promises: its status,
// its content type and, of JSON, each member. It takes the answer after its body
// was read.
func conforms(req *http.Request, r Response) error {
	router, err := document()
	if err != nil {
		return fmt.Errorf("the document: %w", err)
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	asked := &http.Request{Method: req.Method, URL: &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath}, Header: req.Header}
	route, params, err := router.FindRoute(asked)
	switch {
	case err == nil:
	case req.Method == http.MethodHead && len(r.Body) == 0: // GET without its body, which is in the document
		return nil
	case slices.Contains(undocumented, req.URL.Path):
		return nil
	case r.Status >= 400 && r.Status < 500: // not in the document, and not there; or no path that any router takes
		return nil
	default:
		return fmt.Errorf("%s %s answers %d and is not in the document", req.Method, req.URL.Path, r.Status)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route},
		Status:                 r.Status,
		Header:                 r.Header,
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: !strings.HasSuffix(kind, "/json") && !strings.HasSuffix(kind, "+json"),
			SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.EnableFormatValidation()},
		},
	}
	promised := route.Operation.Responses.Status(r.Status)
	if promised == nil {
		promised = route.Operation.Responses.Default()
	}
	if promised == nil {
		return fmt.Errorf("%s %s: the document does not know status %d", req.Method, route.Path, r.Status)
	}
	if content := promised.Value.Content; len(content) > 0 && content.Get(kind) == nil || len(content) == 0 && len(r.Body) > 0 {
		return fmt.Errorf("%s %s: the document does not promise %q for status %d", req.Method, route.Path, kind, r.Status)
	}
	if err := openapi3filter.ValidateResponse(context.Background(), input.SetBodyBytes(r.Body)); err != nil {
		return fmt.Errorf("%s %s answers %d, unlike the document: %w", req.Method, route.Path, r.Status, err)
	}
	return nil
}
