package wire

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// Doer sends requests, as [*http.Client] does.
type Doer interface {
	Do(req *http.Request) (*http.Response, error)
}

// Editor changes a request before it is sent, for example to sign it.
type Editor = func(ctx context.Context, req *http.Request) error

// Client sends the calls of a generated client.
type Client struct {
	server  string // without a final slash
	http    Doer
	editors []Editor
}

// Option configures a client.
type Option func(*Client)

// WithHTTPClient sends requests by doer instead of [http.DefaultClient].
func WithHTTPClient(doer Doer) Option { return func(c *Client) { c.http = doer } }

// WithEditor applies edit to every request.
func WithEditor(edit Editor) Option {
	return func(c *Client) { c.editors = append(c.editors, edit) }
}

// NewClient returns a client of the service at server, an absolute URL that may end with a path.
func NewClient(server string, opts ...Option) (Client, error) {
	c := Client{server: strings.TrimRight(server, "/"), http: http.DefaultClient}
	if _, err := url.Parse(server); err != nil {
		return c, err
	}
	for _, o := range opts {
		o(&c)
	}
	return c, nil
}

// Call is one request. Params is a pointer to a generated parameter struct: fields with a form tag go
// into the query, the others into the header. Body is sent as JSON, unless it is an [io.Reader].
type Call struct {
	Method      string
	Path        string
	Params      any
	Body        any
	ContentType string // default application/json
}

// Path fills the parameters into a path with one %s for each, escaped so that none can change the route.
func Path(format string, params ...any) string {
	escaped := make([]any, len(params))
	for i, p := range params {
		text := paramText(reflect.ValueOf(p))
		switch text {
		case ".", "..": // a server, or a proxy before it, would resolve these
			text = strings.ReplaceAll(text, ".", "%2E")
		default:
			text = url.PathEscape(text)
		}
		escaped[i] = text
	}
	return fmt.Sprintf(format, escaped...)
}

// Send sends the call. The response is the caller's to close; [Decode] does.
func (c *Client) Send(ctx context.Context, call Call, editors ...Editor) (*http.Response, error) {
	query, header := splitParams(call.Params)
	address := c.server + call.Path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	body, err := encodeBody(call.Body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, call.Method, address, body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if call.ContentType == "" {
		call.ContentType = "application/json"
	}
	if body != nil {
		req.Header.Set("Content-Type", call.ContentType)
	}
	for _, edit := range c.editors {
		if err := edit(ctx, req); err != nil {
			return nil, err
		}
	}
	for _, edit := range editors {
		if err := edit(ctx, req); err != nil {
			return nil, err
		}
	}
	return c.http.Do(req)
}

func encodeBody(body any) (io.Reader, error) {
	switch b := body.(type) {
	case nil:
		return nil, nil
	case io.Reader:
		return b, nil
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return bytes.NewReader(raw), nil
}

// splitParams reads a generated parameter struct; absent parameters are nil pointers.
func splitParams(params any) (url.Values, http.Header) {
	query, header := url.Values{}, http.Header{}
	v := reflect.ValueOf(params)
	if params == nil || v.IsNil() {
		return query, header
	}
	v = v.Elem()
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		if value.Kind() == reflect.Pointer || value.Kind() == reflect.Slice {
			if value.IsNil() {
				continue
			}
			value = reflect.Indirect(value)
		}
		name, isQuery := field.Tag.Lookup("form")
		if !isQuery {
			name, _, _ = strings.Cut(field.Tag.Get("json"), ",")
			header.Add(name, paramText(value))
			continue
		}
		name, _, _ = strings.Cut(name, ",")
		if value.Kind() != reflect.Slice {
			query.Add(name, paramText(value))
			continue
		}
		for j := range value.Len() {
			query.Add(name, paramText(value.Index(j)))
		}
	}
	return query, header
}

// paramText is a parameter as the service reads it.
func paramText(v reflect.Value) string {
	switch t := v.Interface().(type) {
	case time.Time:
		return t.Format(time.RFC3339Nano)
	case encoding.TextMarshaler: // such as a UUID
		if text, err := t.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(v.Interface())
}
