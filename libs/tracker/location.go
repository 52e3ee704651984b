package tracker

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// locate converts the address of artifacts into a path below the server's artifact
// root. It queries the server for the artifact locations of runs, logged models and
// model versions.
func (c *Client) locate(ctx context.Context, uri string) (string, error) {
	below := "" // a plain path, while the rest of uri may contain escapes
	// A version leads to a run or logged model, that to storage: three steps suffice.
	for range 3 {
		scheme, rest, _ := strings.Cut(uri, ":")
		var sub string
		var err error
		switch scheme {
		case "mlflow-artifacts", "http", "https":
			p, err := c.storagePath(uri)
			if err != nil {
				return "", err
			}
			return p + below, nil
		case "runs":
			uri, sub, err = c.locateRun(ctx, uri, strings.Trim(rest, "/"))
		case "models":
			uri, sub, err = c.locateModel(ctx, uri, strings.Trim(rest, "/"))
		default:
			return "", fmt.Errorf("tracker: artifacts at %q are not handed out by the tracking server; start it with --serve-artifacts and --artifacts-destination", uri)
		}
		if err != nil {
			return "", err
		}
		if sub != "" {
			if err := checkPath(sub); err != nil {
				return "", err
			}
			below = "/" + sub + below
		}
	}
	return "", fmt.Errorf("tracker: %s leads from address to address without end", uri)
}

// storagePath is the path of an address of the server's own artifact store.
func (c *Client) storagePath(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", fmt.Errorf("tracker: artifact address %q: %w", uri, err)
	}
	p := u.Path
	switch {
	case u.Scheme == "mlflow-artifacts" && u.Host == "":
	case strings.HasPrefix(uri, c.base+artifactsPath+"/"):
		p = strings.TrimPrefix(uri, c.base+artifactsPath)
		if p, err = url.PathUnescape(p); err != nil {
			return "", fmt.Errorf("tracker: artifact address %q: %w", uri, err)
		}
	default:
		return "", fmt.Errorf("tracker: artifact address %q is on another server; only that of the tracking server is read", uri)
	}
	p = strings.Trim(p, "/")
	if err := checkPath(p); err != nil {
		return "", err
	}
	return p, nil
}

func (c *Client) locateRun(ctx context.Context, uri, rest string) (at, sub string, err error) {
	id, sub, _ := strings.Cut(rest, "/")
	if id == "" {
		return "", "", fmt.Errorf("tracker: %s names no run; want runs:/<run id>/<path>", uri)
	}
	r, err := c.GetRun(ctx, id)
	return r.ArtifactURI, sub, err
}

func (c *Client) locateModel(ctx context.Context, uri, rest string) (at, sub string, err error) {
	name, sub, _ := strings.Cut(rest, "/")
	if strings.HasPrefix(name, "m-") && !strings.Contains(name, "@") {
		m, err := c.GetLoggedModel(ctx, name)
		return m.ArtifactURI, sub, err
	}
	var version string
	if n, alias, ok := strings.Cut(name, "@"); ok {
		v, err := c.GetByAlias(ctx, n, alias)
		if err != nil {
			return "", "", err
		}
		name, version = n, v.Version
	} else if version, sub, _ = strings.Cut(sub, "/"); version == "" {
		return "", "", fmt.Errorf("tracker: %s names no version; want models:/<name>/<version>, models:/<name>@<alias> or models:/m-<id>", uri)
	}
	at, err = c.DownloadURI(ctx, name, version)
	return at, sub, err
}

// checkPath refuses anything but a plain path below a root.
func checkPath(p string) error {
	if p == "" || p != path.Clean(p) || strings.HasPrefix(p, "/") || p == "." || p == ".." ||
		strings.HasPrefix(p, "../") || strings.ContainsAny(p, "\x00\\") {
		return fmt.Errorf("tracker: artifact path %q is not a plain relative path", p)
	}
	return nil
}

// escapePath makes each element of p safe in a URL.
func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i, s := range parts {
		parts[i] = url.PathEscape(s)
	}
	return strings.Join(parts, "/")
}

// LoggedModel is a model as the tracker keeps it before it is registered.
type LoggedModel struct {
	ID          string
	Name        string
	SourceRunID string
	Status      string
	ArtifactURI string
}

// GetLoggedModel reads a logged model by its id, which begins with "m-".
func (c *Client) GetLoggedModel(ctx context.Context, id string) (LoggedModel, error) {
	var out struct {
		Model struct {
			Info struct {
				ID          string `json:"model_id"`
				Name        string `json:"name"`
				SourceRunID string `json:"source_run_id"`
				Status      string `json:"status"`
				ArtifactURI string `json:"artifact_uri"`
			} `json:"info"`
		} `json:"model"`
	}
	err := c.get(ctx, "logged-models/"+url.PathEscape(id), nil, &out)
	return LoggedModel(out.Model.Info), err
}
