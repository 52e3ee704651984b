package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

func itoa(i int) string { return strconv.Itoa(i) }

// readJWKS reads a JSON Web Key Set, written as YAML or as a JSON text, and returns its JSON. It checks for mistakes
// that an operator makes; the verifier parses the keys.
func readJWKS(n ast.Node) ([]byte, error) {
	var raw []byte
	if s, ok := scalarText(n); ok {
		raw = []byte(s)
	} else {
		var v map[string]any
		if err := yaml.NodeToValue(n, &v); err != nil {
			return nil, errors.New("must be a JSON Web Key Set: a mapping with keys")
		}
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return nil, errors.New("must be a JSON Web Key Set: a mapping with keys")
		}
	}
	var set struct {
		Keys []map[string]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil || len(set.Keys) == 0 {
		return nil, errors.New("must be a JSON Web Key Set: a mapping with keys, at least one")
	}
	for i, key := range set.Keys {
		var kty string
		_ = json.Unmarshal(key["kty"], &kty)
		members, known := map[string][]string{"RSA": {"n", "e"}, "EC": {"crv", "x", "y"}, "OKP": {"crv", "x"}}[kty]
		if !known {
			return nil, fmt.Errorf("has keys[%d] of type %q; a provider signs by RSA, EC or OKP keys", i, kty)
		}
		if _, private := key["d"]; private {
			return nil, fmt.Errorf("has keys[%d] with its private part d; give the public key, and replace that one at the provider", i)
		}
		for _, m := range members {
			var s string
			if json.Unmarshal(key[m], &s) != nil || s == "" {
				return nil, fmt.Errorf("has keys[%d] without %s", i, m)
			}
		}
	}
	return raw, nil
}
