package orchestratord

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	problemdoc "github.com/mlp-platform/platform/libs/problem"
)

// decodeBody reads a body. As on a real server, unknown members at the top level are ignored; types that must not have
// any refuse them. An empty body is {}.
func decodeBody(r *http.Request, dst any) error {
	b, err := readBody(r)
	if err != nil {
		return err
	}
	return decodeBytes(b, dst)
}

// readBody reads a body that is JSON, or empty.
func readBody(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, refuseRequest(http.StatusRequestEntityTooLarge, "The body is over %d bytes.", tooLarge.Limit)
	}
	if coding := (*problemdoc.Error)(nil); errors.As(err, &coding) {
		return nil, refuseRequest(coding.Kind.Status, "%s", coding.Detail)
	}
	if err != nil {
		return nil, refuseRequest(http.StatusBadRequest, "The body ended early: %v", err)
	}
	// A form of a web page can send other types without asking first; clients of the interface send JSON.
	if t := r.Header.Get("Content-Type"); t != "" && len(bytes.TrimSpace(b)) > 0 {
		if mt, _, err := mime.ParseMediaType(t); err != nil || mt != "application/json" {
			return nil, invalidMember("", "the body is not application/json but %q", t)
		}
	}
	if !utf8.Valid(b) {
		return nil, invalidMember("", "the body is not UTF-8")
	}
	return b, nil
}

func decodeBytes(b []byte, dst any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	err := json.Unmarshal(b, dst)
	var typeErr *json.UnmarshalTypeError
	var ref *refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ref):
		return ref
	case errors.As(err, &typeErr):
		return invalidMember(typeErr.Field, "%s cannot be read as %s", typeErr.Value, typeErr.Type)
	}
	return invalidMember("", "%v", err)
}

// decodeFilter decodes a filter. A member that is not known is refused, so that no
// condition is passed over in silence; the official client also sends those it
// does not use, as null.
func decodeFilter(b []byte, loc string, dst any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		b, err = json.Marshal(withoutDefaults(v))
	}
	if err == nil {
		d = json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		err = d.Decode(dst)
	}
	var ref *refusal
	if err == nil || errors.As(err, &ref) {
		return err
	}
	return invalidMember(loc, "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// withoutDefaults drops members with their default values.
func withoutDefaults(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for k, member := range m {
		if member == nil || k == "operator" && member == "and_" {
			delete(m, k)
			continue
		}
		m[k] = withoutDefaults(member)
	}
	return m
}

func pathID(r *http.Request) (uuid.UUID, error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil || len(r.PathValue("id")) != 36 {
		return uuid.Nil, refuseRequest(http.StatusNotFound, "Not Found")
	}
	return id, nil
}

// page selects a page in a filter's body.
type page struct {
	Limit  *int `json:"limit"`
	Offset int  `json:"offset"`
}

const maxPage = 200

func (p page) bounds() (limit, offset int, err error) {
	limit = maxPage
	if p.Limit != nil {
		limit = *p.Limit
	}
	if limit > maxPage {
		return 0, 0, refuseRequest(http.StatusUnprocessableEntity, "Invalid limit: must be less than or equal to %d.", maxPage)
	}
	if limit < 0 {
		return 0, 0, invalidMember("limit", "must not be negative")
	}
	if p.Offset < 0 {
		return 0, 0, invalidMember("offset", "must not be negative")
	}
	return limit, p.Offset, nil
}
