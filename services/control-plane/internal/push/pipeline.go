package push

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/service"
)

// pipelineTimeout limits the wait for the forge's answer.
const pipelineTimeout = 10 * time.Second

// maxPipelineAnswer limits the size of the answer, in bytes.
const maxPipelineAnswer = 64 << 10

// Pipeline is a CI pipeline of the forge that is triggered by new heads.
type Pipeline struct {
	// URL is the forge's base, such as https://forge.example.
	URL string
	// Project is its id, or its path with the group.
	Project string
	Token   service.Secret
	HTTP    *http.Client
}

// Trigger starts the pipeline on the branch, with the commit in the variable
// MODELREPO_COMMIT, and returns its id. Errors contain no secrets.
func (p *Pipeline) Trigger(ctx context.Context, branch, commit string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, pipelineTimeout)
	defer cancel()
	form := url.Values{"token": {p.Token.Reveal()}, "ref": {branch}, "variables[MODELREPO_COMMIT]": {commit}}
	at := strings.TrimSuffix(p.URL, "/") + "/api/v4/projects/" + url.PathEscape(p.Project) + "/trigger/pipeline"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, fmt.Errorf("trigger pipeline: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := p.HTTP.Do(req)
	if err != nil {
		return 0, fmt.Errorf("trigger pipeline: %w", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxPipelineAnswer))
	if err != nil {
		return 0, fmt.Errorf("trigger pipeline: read answer: %w", err)
	}
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("trigger pipeline: the forge answered %d", resp.StatusCode)
	}
	var made struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(raw, &made); err != nil || made.ID == 0 {
		return 0, fmt.Errorf("trigger pipeline: the forge's answer names no pipeline")
	}
	return made.ID, nil
}
