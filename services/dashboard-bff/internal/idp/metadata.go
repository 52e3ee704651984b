package idp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mlp-platform/platform/libs/trust"
)

// metadata is the part of a discovery document that the dashboard reads (OpenID Connect Discovery 1.0, RFC 8414, RFC
// 9207).
type metadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	JWKSURI               string   `json:"jwks_uri"`
	EndSessionEndpoint    string   `json:"end_session_endpoint"`
	IntrospectionEndpoint string   `json:"introspection_endpoint"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	IssParameterSupported bool     `json:"authorization_response_iss_parameter_supported"`
}

const discoveryPath = "/.well-known/openid-configuration"

// loadMetadata fetches the provider's discovery document. A document of another issuer would let one provider's
// server speak for another, so the issuers must be equal to the letter.
func loadMetadata(ctx context.Context, client *http.Client, p *trust.Provider) (metadata, error) {
	address := strings.TrimSuffix(p.Issuer, "/") + discoveryPath
	doc, err := getJSON(ctx, client, address)
	if err != nil {
		return metadata{}, err
	}
	var m metadata
	raw, err := json.Marshal(doc)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return metadata{}, fmt.Errorf("%w: %s is no discovery document: %w", ErrUnreachable, address, err)
	}
	if m.Issuer != p.Issuer {
		return metadata{}, fmt.Errorf("%w: %s is of the issuer %.200q, not of %q", ErrUnreachable, address, m.Issuer, p.Issuer)
	}
	for name, value := range map[string]*string{
		"authorization_endpoint": &m.AuthorizationEndpoint, "token_endpoint": &m.TokenEndpoint, "jwks_uri": &m.JWKSURI,
		"end_session_endpoint": &m.EndSessionEndpoint, "introspection_endpoint": &m.IntrospectionEndpoint,
	} {
		if *value == "" {
			if name == "jwks_uri" {
				return metadata{}, fmt.Errorf("%w: %s names no %s", ErrUnreachable, address, name)
			}
			continue
		}
		if why := checkEndpoint(p, *value); why != "" {
			return metadata{}, fmt.Errorf("%w: %s: %s %s", ErrUnreachable, address, name, why)
		}
	}
	return m, nil
}

// checkEndpoint returns the fault of an address in a discovery document, or "". It may have a query, as some providers
// need; a provider that is reached by https must not lead to http.
func checkEndpoint(p *trust.Provider, value string) string {
	u, err := url.Parse(value)
	if err != nil {
		return "is no URL"
	}
	if u.Scheme == "http" && strings.HasPrefix(p.Issuer, "https:") {
		return "is http, although the issuer is https"
	}
	u.RawQuery = ""
	return trust.CheckAddress(u.String(), p.AllowInsecureHTTP)
}
