package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// maxAnswer limits an answer of the forge, in bytes: a comparison of 1,000 files with patches stays below it.
const maxAnswer = 8 << 20

// GitLab queries the REST interface of a GitLab server about one project.
type GitLab struct {
	base    string // up to and including /repository
	token   service.Secret
	client  *http.Client
	project string
}

// OpenGitLab returns the source for the project (id, or path with namespace) on the server at base, an http or https
// URL. timeout limits each request.
func OpenGitLab(base, project string, token service.Secret, timeout time.Duration) *GitLab {
	return &GitLab{
		base:  strings.TrimRight(base, "/") + "/api/v4/projects/" + url.PathEscape(project) + "/repository",
		token: token, client: service.HTTPClient(timeout), project: project,
	}
}

// Kind is part of Source.
func (g *GitLab) Kind() string { return "gitlab" }

type gitlabCommit struct {
	ID         string   `json:"id"`
	Message    string   `json:"message"`
	AuthorName string   `json:"author_name"`
	ParentIDs  []string `json:"parent_ids"`
}

type gitlabDiff struct {
	OldPath     string `json:"old_path"`
	NewPath     string `json:"new_path"`
	Diff        string `json:"diff"`
	NewFile     bool   `json:"new_file"`
	RenamedFile bool   `json:"renamed_file"`
	DeletedFile bool   `json:"deleted_file"`
	Collapsed   bool   `json:"collapsed"`
	TooLarge    bool   `json:"too_large"`
}

type gitlabComparison struct {
	Diffs          []gitlabDiff `json:"diffs"`
	CompareTimeout bool         `json:"compare_timeout"`
}

// Head is part of Source.
func (g *GitLab) Head(ctx context.Context, branch string) (Commit, error) {
	var list []gitlabCommit
	err := g.get(ctx, "/commits", url.Values{"ref_name": {branch}, "per_page": {"1"}}, &list)
	switch {
	case errors.Is(err, ErrUnknown):
		// A project without commits answers 404 like one without the branch.
		return Commit{}, noBranch(branch)
	case err != nil:
		return Commit{}, err
	case len(list) == 0:
		return Commit{}, nil
	}
	id, err := commitID(list[0].ID)
	if err != nil || !isFullSHA(id) {
		return Commit{}, errors.New("GitLab's answer names no commit")
	}
	return newCommit(id, list[0].AuthorName, list[0].Message), nil
}

// Files is part of Source.
func (g *GitLab) Files(ctx context.Context, from, to string) ([]string, error) {
	c, err := g.compare(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if c.CompareTimeout || len(c.Diffs) >= maxFiles {
		return nil, fmt.Errorf("GitLab did not list all files: %w", ErrUnknown)
	}
	out := make([]string, 0, len(c.Diffs))
	for _, d := range c.Diffs {
		for _, p := range []string{d.OldPath, d.NewPath} {
			if p != "" && wire.Storable(p) && (len(out) == 0 || out[len(out)-1] != p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

func (g *GitLab) compare(ctx context.Context, from, to string) (c gitlabComparison, err error) {
	if from, err = commitID(from); err != nil {
		return c, err
	}
	if to, err = commitID(to); err != nil {
		return c, err
	}
	// straight: compare the two commits, not from their merge base.
	err = g.get(ctx, "/compare", url.Values{"from": {from}, "to": {to}, "straight": {"true"}}, &c)
	return c, err
}

// Diff is part of Source.
func (g *GitLab) Diff(ctx context.Context, from, to string) (Diff, error) {
	end, err := g.commit(ctx, to)
	if err != nil {
		return Diff{}, err
	}
	out := Diff{To: end.ID}
	if from == "" && len(end.ParentIDs) > 0 {
		from = end.ParentIDs[0]
	}
	var c gitlabComparison
	if from == "" {
		if err := g.get(ctx, "/commits/"+end.ID+"/diff", url.Values{"per_page": {"100"}}, &c.Diffs); err != nil {
			return Diff{}, err
		}
		out.Truncated = len(c.Diffs) >= 100
	} else {
		begin, err := g.commit(ctx, from)
		if err != nil {
			return Diff{}, err
		}
		out.From = begin.ID
		if c, err = g.compare(ctx, begin.ID, end.ID); err != nil {
			return Diff{}, err
		}
	}
	out.Truncated = out.Truncated || c.CompareTimeout || len(c.Diffs) >= maxFiles
	for _, d := range c.Diffs {
		f := File{Path: d.NewPath, Status: Modified}
		switch {
		case d.NewFile:
			f.Status = Added
		case d.DeletedFile:
			f.Status, f.Path = Removed, d.OldPath
		case d.RenamedFile:
			f.Status = Renamed
		}
		if !wire.Storable(f.Path) {
			out.Truncated = true
			continue
		}
		if d.Collapsed || d.TooLarge {
			out.Truncated = true
		} else if strings.HasPrefix(d.Diff, "@@") && wire.Storable(d.Diff) { // otherwise a note that they are binary
			f.Patch = d.Diff
			f.Additions, f.Deletions = countChangedLines(d.Diff)
		}
		out.Files = append(out.Files, f)
	}
	return out, nil
}

// countChangedLines counts the added and removed lines of a patch without file headers.
func countChangedLines(patch string) (added, removed int) {
	for line := range strings.Lines(patch) {
		switch line[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}

func (g *GitLab) commit(ctx context.Context, sha string) (c gitlabCommit, err error) {
	if sha, err = commitID(sha); err != nil {
		return c, err
	}
	if err = g.get(ctx, "/commits/"+sha, nil, &c); err != nil {
		return c, err
	}
	if c.ID, err = commitID(c.ID); err != nil || !isFullSHA(c.ID) || !strings.HasPrefix(c.ID, sha) {
		return c, errors.New("GitLab's answer names another commit")
	}
	return c, nil
}

// get reads one JSON document. Errors name the route and never the query or the token.
func (g *GitLab) get(ctx context.Context, path string, query url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return fmt.Errorf("ask GitLab: %w", withoutURL(err))
	}
	req.Header.Set("Accept", "application/json")
	if g.token != "" {
		req.Header.Set("PRIVATE-TOKEN", g.token.Reveal())
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return fmt.Errorf("GitLab does not answer: %w", withoutURL(err))
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return fmt.Errorf("GitLab answered 404: %w", ErrUnknown)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("GitLab answered %d: GITLAB_TOKEN is missing, wrong or may not read the project", resp.StatusCode)
	default:
		return fmt.Errorf("GitLab answered %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("read GitLab's answer: %w", withoutURL(err))
	}
	if len(body) > maxAnswer {
		return fmt.Errorf("GitLab's answer is larger than %d bytes", maxAnswer)
	}
	if json.Unmarshal(body, into) != nil {
		return errors.New("GitLab's answer is not the JSON document expected")
	}
	return nil
}

// withoutURL returns the cause of a failed request without its URL, which may contain credentials.
func withoutURL(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err
}
