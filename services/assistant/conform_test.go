package assistant_test

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/mlp-platform/platform/services/assistant/api"
)

// loadDocument is the API's document, by which the answers of all tests are judged.
var loadDocument = sync.OnceValues(func() (routers.Router, error) {
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

// closeSchema makes members that the document does not name a fault, unless it says that there may be others.
func closeSchema(s *openapi3.Schema) {
	if s.Type.Is("object") && len(s.Properties) > 0 && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
}

// conforms says whether an answer is one that the document promises: its status, its content type and, of JSON, each
// member.
func conforms(req *http.Request, a answer) error {
	router, err := loadDocument()
	if err != nil {
		return fmt.Errorf("the document: %w", err)
	}
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	asked := &http.Request{Method: req.Method, URL: &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath}, Header: req.Header}
	route, params, err := router.FindRoute(asked)
	switch {
	case err == nil:
	case req.Method == http.MethodHead && len(a.body) == 0: // GET without its body, which is in the document
		return nil
	case slices.Contains([]string{"/docs", "/redoc", "/openapi.json"}, req.URL.Path):
		return nil
	case a.StatusCode >= 400 && a.StatusCode < 500: // not in the document, and not there
		return nil
	default:
		return fmt.Errorf("%s %s answers %d and is not in the document", req.Method, req.URL.Path, a.StatusCode)
	}
	promised := route.Operation.Responses.Status(a.StatusCode)
	if promised == nil {
		promised = route.Operation.Responses.Default()
	}
	if promised == nil {
		return fmt.Errorf("%s %s: the document does not know status %d", req.Method, route.Path, a.StatusCode)
	}
	if content := promised.Value.Content; len(content) > 0 && content.Get(kind) == nil || len(content) == 0 && len(a.body) > 0 {
		return fmt.Errorf("%s %s: the document does not promise %q for status %d", req.Method, route.Path, kind, a.StatusCode)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route},
		Status:                 a.StatusCode,
		Header:                 a.Header,
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: !strings.HasSuffix(kind, "/json") && !strings.HasSuffix(kind, "+json"),
			SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.EnableFormatValidation()},
		},
	}
	if err := openapi3filter.ValidateResponse(context.Background(), input.SetBodyBytes(a.body)); err != nil {
		return fmt.Errorf("%s %s answers %d, unlike the document: %w", req.Method, route.Path, a.StatusCode, err)
	}
	return nil
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	b := start(t)
	doc := b.want(200, "GET", "/openapi.json", "", "").document(t)
	if doc["openapi"] != "3.0.3" {
		t.Errorf("%v", doc["openapi"])
	}
	for _, page := range []string{"/docs", "/redoc"} {
		if a := b.want(200, "GET", page, "", ""); !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %s", page, a.Header.Get("Content-Type"))
		}
	}
}
