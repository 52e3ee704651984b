package controltower

import (
	_ "embed"
	"fmt"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// openapiText is the API's OpenAPI document, of no build in particular. The service
// writes it from its route table; a test there holds the two against each other.
//
//go:embed openapi.json
var openapiText []byte

// OpenAPI is the API's OpenAPI document for a build of the service, in form C1.
func OpenAPI(version string) ([]byte, error) {
	value, err := canon.Parse(openapiText, canon.ObjectRoot())
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	info, _ := value.(*canon.Object).Get("info")
	about, ok := info.(*canon.Object)
	if !ok {
		return nil, fmt.Errorf("read the OpenAPI document: it has no info")
	}
	about.Set("version", version)
	return canon.C1(value)
}
