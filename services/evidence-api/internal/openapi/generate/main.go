// Command generate writes the API's OpenAPI document from the route table.
// usage: generate FILE
package main

import (
	"log"
	"os"

	"github.com/mlp-platform/platform/services/evidence-api/internal/openapi"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: generate FILE")
	}
	text, err := openapi.Snapshot()
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}
