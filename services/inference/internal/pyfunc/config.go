package pyfunc

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"
)

// Config of Servers. Without Endpoints and Command, nothing is served.
type Config struct {
	// Endpoints are the scoring servers by the tracker's model name in upper case, or by NAME/VERSION for one version.
	Endpoints map[string]*url.URL
	// Command starts a scoring server for models without an ONNX graph; {model} and {port} in it are replaced.
	Command []string
	// Dir is where the working folders of started servers are made.
	Dir string
	// RunLimit limits one run.
	RunLimit time.Duration
	// Sessions is how many runs of one model happen at a time.
	Sessions int
	Log      *slog.Logger
}

// maxEndpoints limits the scoring servers that are named.
const maxEndpoints = 1000

// ParseEndpoints reads PYFUNC_ENDPOINTS_JSON: an object of model names and URLs. All faults are reported.
func ParseEndpoints(raw string) (map[string]*url.URL, error) {
	if strings.TrimSpace(raw) == "" {
		return nil, nil
	}
	var byName map[string]string
	if err := json.Unmarshal([]byte(raw), &byName); err != nil {
		return nil, errors.New("it must be a JSON object of model names and URLs")
	}
	if len(byName) > maxEndpoints {
		return nil, fmt.Errorf("it names %d models; at most %d are taken", len(byName), maxEndpoints)
	}
	out := make(map[string]*url.URL, len(byName))
	var faults []error
	for name, text := range byName {
		key := strings.ToUpper(strings.TrimSpace(name))
		u, err := parseEndpoint(text)
		switch {
		case key == "":
			faults = append(faults, errors.New("a model has no name"))
		case out[key] != nil:
			faults = append(faults, fmt.Errorf("%s is there twice, in different case", key))
		case err != nil:
			faults = append(faults, fmt.Errorf("%s: %w", key, err))
		default:
			out[key] = u
		}
	}
	return out, errors.Join(faults...)
}

// parseEndpoint never repeats the URL: it may hold a secret that does not belong there.
func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("this is no http or https URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the URL must have no user, query or fragment")
	}
	if why := forbiddenHost(u.Hostname()); why != "" {
		return nil, fmt.Errorf("the URL leads to %s", why)
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/invocations")
	return u, nil
}

// The parts of PYFUNC_COMMAND that are replaced.
const (
	modelMark = "{model}"
	portMark  = "{port}"
)

// ParseCommand reads PYFUNC_COMMAND: words between spaces, or a JSON list of words. No shell reads them.
func ParseCommand(raw string) ([]string, error) {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return nil, nil
	}
	words := strings.Fields(raw)
	if strings.HasPrefix(raw, "[") {
		words = nil
		if err := json.Unmarshal([]byte(raw), &words); err != nil {
			return nil, errors.New("it starts with [ and is no JSON list of words")
		}
	}
	for _, mark := range []string{modelMark, portMark} {
		if !strings.Contains(strings.Join(words, " "), mark) {
			return nil, fmt.Errorf("no word contains %s, as in: mlflow models serve --env-manager local -h 127.0.0.1 -m {model} -p {port}", mark)
		}
	}
	return words, nil
}
