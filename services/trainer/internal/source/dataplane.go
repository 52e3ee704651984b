package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/textfile"
)

// Limits of a dataplane's pages.
const (
	pageLimit = 1000
	maxPage   = 32 << 20
	maxPages  = 100_000
	// maxMembers of all records of a page, by their colons.
	maxMembers = 1_000_000
	maxCursor  = 4 << 10
)

// Item is one record of a dataplane.
type Item map[string]json.RawMessage

// Items reads all records below a path, page by page, to the end. raw gets the bytes of each page.
func (s *Sources) Items(ctx context.Context, d modelrepo.Dataplane, raw io.Writer, tell func(Item) error) error {
	if s.cfg.DataplaneURL == "" {
		return errors.New("the dataplane is not configured; set DATAPLANE_URL")
	}
	ctx, cancel := limitFetch(ctx)
	defer cancel()
	seen := map[string]bool{}
	cursor := ""
	for page := 1; ; page++ {
		items, next, err := s.page(ctx, d.Path, cursor, raw)
		if err == nil {
			for _, item := range items {
				if err = tell(item); err != nil {
					break
				}
			}
		}
		switch {
		case err != nil:
			return fmt.Errorf("dataplane %s, page %d: %w", d.Path, page, err)
		case next == "":
			return nil
		case seen[next] || next == cursor:
			return fmt.Errorf("dataplane %s, page %d repeats the cursor of an earlier page, so the pages would never end", d.Path, page)
		case page == maxPages:
			return fmt.Errorf("dataplane %s has more than %d pages", d.Path, maxPages)
		}
		seen[next] = true
		cursor = next
	}
}

func (s *Sources) page(ctx context.Context, path, cursor string, raw io.Writer) ([]Item, string, error) {
	query := url.Values{"limit": {fmt.Sprint(pageLimit)}, "cursor": {cursor}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.cfg.DataplaneURL, "/")+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, "", errors.New("the address is not valid")
	}
	req.Header.Set("Accept", "application/json")
	if s.cfg.DataplaneToken != "" {
		req.Header.Set("Authorization", "Bearer "+s.cfg.DataplaneToken)
	}
	resp, err := service.HTTPClient(2 * headerTimeout).Do(req)
	if err != nil {
		return nil, "", wrapCallError(ctx, err)
	}
	defer resp.Body.Close()
	if err := checkStatus(resp); err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return nil, "", wrapCallError(ctx, err)
	}
	if len(body) > maxPage {
		return nil, "", fmt.Errorf("it is larger than %d MiB", maxPage>>20)
	}
	if _, err := raw.Write(body); err != nil {
		return nil, "", err
	}
	if body, err = textfile.Clean(body); err != nil { // encoding/json would read U+FFFD
		return nil, "", fmt.Errorf("the page: %w", err)
	}
	return parsePage(body)
}

// parsePage reads an array, which is the only page, or an object with jobs or items and the cursor of the next page.
func parsePage(body []byte) (items []Item, next string, err error) {
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		if items, err = parseItems(body); err != nil {
			return nil, "", fmt.Errorf("the page: %w", err)
		}
		return items, "", nil
	}
	var page struct {
		Jobs       json.RawMessage `json:"jobs"`
		Items      json.RawMessage `json:"items"`
		NextCursor *string         `json:"next_cursor"`
		Cursor     *string         `json:"cursor"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, "", errors.New("the page is neither a JSON array nor an object with jobs or items, and next_cursor as text")
	}
	list := page.Jobs
	if isAbsent(list) {
		list = page.Items
	}
	if isAbsent(list) {
		return nil, "", errors.New("the page has neither jobs nor items")
	}
	if items, err = parseItems(list); err != nil {
		return nil, "", fmt.Errorf("the page's records: %w", err)
	}
	for _, c := range []*string{page.NextCursor, page.Cursor} {
		if c != nil && *c != "" {
			next = *c
			break
		}
	}
	if len(next) > maxCursor {
		return nil, "", fmt.Errorf("its cursor is longer than %d bytes", maxCursor)
	}
	return items, next, nil
}

func isAbsent(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// parseItems reads an array one record at a time: a small record takes a hundred times its text, so that many must be
// refused before they are made.
func parseItems(text []byte) ([]Item, error) {
	errShape := errors.New("no JSON array of objects")
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return nil, errShape
	}
	var items []Item
	members := 0
	for d.More() {
		if len(items) == pageLimit {
			return nil, fmt.Errorf("more than the %d records requested", pageLimit)
		}
		var record json.RawMessage
		if err := d.Decode(&record); err != nil {
			return nil, errShape
		}
		// One record may have millions of members. Colons inside texts count as well, which the limit leaves room for.
		if members += bytes.Count(record, []byte(":")); members > maxMembers {
			return nil, fmt.Errorf("its records have more than %d members", maxMembers)
		}
		var item Item
		if err := json.Unmarshal(record, &item); err != nil {
			return nil, errShape
		}
		items = append(items, item)
	}
	if _, err := d.Token(); err != nil {
		return nil, errShape
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errShape
	}
	return items, nil
}
