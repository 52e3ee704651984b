package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/mlp-platform/platform/libs/service"
)

// bare is the folder of the fetched repository.
const bare = "repo.git"

// haves is how many known commits a fetch sends to the server, so that it returns only what is new. go-git does not
// negotiate; histories that diverge earlier are sent whole.
const haves = 100

// fetcher is the child's side of a Remote: only it reads a server's data.
type fetcher struct {
	slot     string // the folder to work in, not shared
	endpoint *transport.Endpoint
	client   transport.Transport
	refused  string
	tell     func(response)
}

func newFetcher(rawURL service.Secret, slot string, timeout time.Duration) (*fetcher, error) {
	u, err := parseGitURL(rawURL)
	if err != nil {
		return nil, err
	}
	ep, err := transport.NewEndpoint(u.String())
	if err != nil {
		return nil, errors.New("MODELREPO_GIT_URL is not the URL of a git repository")
	}
	hc := service.HTTPClient(timeout)
	hc.Transport = bounded{hc.Transport}
	return &fetcher{slot: slot, endpoint: ep, client: githttp.NewClientWithOptions(hc, nil), tell: func(response) {}}, nil
}

// fetched opens the fetched repository without a turn: it writes nothing to the folder, which another call may be
// filling.
func (r *fetcher) fetched() (*git.Repository, error) {
	repo, err := git.PlainOpen(filepath.Join(r.slot, bare))
	if err != nil {
		return nil, fmt.Errorf("nothing was fetched: %w", ErrUnknown)
	}
	return repo, nil
}

// open opens the fetched repository. A folder that is not a repository was left by a process that died early, or is
// damaged: it is recreated. The caller has taken its turn.
func (r *fetcher) open() (*git.Repository, error) {
	if repo, err := git.PlainOpen(filepath.Join(r.slot, bare)); err == nil {
		return repo, nil
	}
	return r.anew()
}

// anew creates an empty repository.
func (r *fetcher) anew() (*git.Repository, error) {
	bare := filepath.Join(r.slot, bare)
	if err := os.RemoveAll(bare); err != nil {
		return nil, fmt.Errorf("MODELREPO_CACHE_DIR cannot be used: %w", err)
	}
	repo, err := git.PlainInit(bare, true)
	if err != nil {
		return nil, fmt.Errorf("MODELREPO_CACHE_DIR cannot be used: %w", err)
	}
	return repo, nil
}

// head lists the server's branches, and fetches the commit if it is new.
func (r *fetcher) head(ctx context.Context, branch string) (Commit, error) {
	hash, err := r.update(ctx, branch)
	if err != nil || hash.IsZero() {
		return Commit{}, err
	}
	repo, err := r.open()
	if err != nil {
		return Commit{}, err
	}
	commit, err := describeCommit(repo, hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return Commit{}, fmt.Errorf("%w: the server sent a pack without it", ErrMalformed)
	}
	return commit, err
}

func (r *fetcher) files(ctx context.Context, from, to string) ([]string, error) {
	repo, err := r.fetched()
	if err != nil {
		return nil, err
	}
	return filesOf(ctx, repo, from, to)
}

func (r *fetcher) diff(ctx context.Context, from, to string) (Diff, error) {
	repo, err := r.fetched()
	if err != nil {
		return Diff{}, err
	}
	return diffOf(ctx, repo, from, to)
}

// update fetches what is new on the branch; zero is an empty repository.
func (r *fetcher) update(ctx context.Context, branch string) (plumbing.Hash, error) {
	ep := *r.endpoint // a redirect within the host changes it
	session, err := r.client.NewUploadPackSession(&ep, nil)
	if err != nil {
		return plumbing.ZeroHash, gitFault(err)
	}
	defer session.Close()
	adv, err := session.AdvertisedReferencesContext(ctx)
	switch {
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return plumbing.ZeroHash, nil
	case err != nil:
		return plumbing.ZeroHash, gitFault(err)
	}
	hash, ok := adv.References[plumbing.NewBranchReferenceName(branch).String()]
	if !ok {
		return plumbing.ZeroHash, noBranch(branch)
	}
	r.tell(response{Commit: Commit{SHA: hash.String()}})
	if hash.String() == r.refused {
		return plumbing.ZeroHash, fmt.Errorf("%w: it was refused before", ErrMalformed)
	}
	repo, err := r.open()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if storedBytes(filepath.Join(r.slot, bare)) > maxStored {
		if repo, err = r.anew(); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	ref := plumbing.NewHashReference(plumbing.NewBranchReferenceName(branch), hash)
	// The reference is set only after all objects are stored.
	if known, err := repo.Reference(ref.Name(), true); err == nil && known.Hash() == hash {
		if _, err := repo.CommitObject(hash); err == nil {
			return hash, nil
		}
		// The fetched repository is damaged; it is fetched again.
		if repo, err = r.anew(); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	if err := r.fetchCommit(ctx, session, adv, repo, hash); err != nil {
		return plumbing.ZeroHash, err
	}
	if err := repo.Storer.SetReference(ref); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("note what was fetched: %w", err)
	}
	return hash, nil
}

func (r *fetcher) fetchCommit(ctx context.Context, session transport.UploadPackSession, adv *packp.AdvRefs, repo *git.Repository, want plumbing.Hash) error {
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	req.Capabilities.Delete(capability.ThinPack) // every pack must be readable on its own
	req.Wants = []plumbing.Hash{want}
	var err error
	if req.Haves, err = listCompleteCommits(repo); err != nil {
		return fmt.Errorf("list what was fetched before: %w", err)
	}
	resp, err := session.UploadPack(ctx, req)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return nil // another branch already brought it
	}
	if err != nil {
		return gitFault(err)
	}
	defer resp.Close()
	var pack io.Reader = resp
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		pack = sideband.NewDemuxer(sideband.Sideband64k, resp)
	case req.Capabilities.Supports(capability.Sideband):
		pack = sideband.NewDemuxer(sideband.Sideband, resp)
	}
	// The whole pack is received and its size checked before any of it is kept.
	spooled, err := spool(pack, r.slot)
	if err != nil {
		return err
	}
	defer spooled.Close()
	r.tell(response{Commit: Commit{SHA: want.String()}, Stage: stageReading})
	if err := checkPack(ctx, spooled); err != nil {
		return err
	}
	if _, err := spooled.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := packfile.UpdateObjectStorage(repo.Storer, spooled); err != nil && !errors.Is(err, packfile.ErrEmptyPackfile) {
		return fmt.Errorf("%w: %w", ErrMalformed, gitFault(err))
	}
	return nil
}

// listCompleteCommits lists commits whose whole history is stored.
func listCompleteCommits(repo *git.Repository) ([]plumbing.Hash, error) {
	refs, err := repo.References()
	if err != nil {
		return nil, err
	}
	seen := map[plumbing.Hash]bool{}
	var out []plumbing.Hash
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() != plumbing.HashReference {
			return nil
		}
		tip, err := repo.CommitObject(ref.Hash())
		if err != nil {
			return err
		}
		n := 0
		return object.NewCommitPreorderIter(tip, nil, nil).ForEach(func(c *object.Commit) error {
			if n++; n > haves || len(out) >= 10*haves {
				return storer.ErrStop
			}
			if !seen[c.Hash] {
				seen[c.Hash] = true
				out = append(out, c.Hash)
			}
			return nil
		})
	})
	return out, err
}

// gitFault describes a fault of the server, without its URL.
func gitFault(err error) error {
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return errors.New("the git server refuses the credentials of MODELREPO_GIT_URL, or they are missing")
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return errors.New("the git server has no repository at MODELREPO_GIT_URL")
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the git server did not answer in time")
	}
	var unexpected *plumbing.UnexpectedError
	if errors.As(err, &unexpected) {
		err = unexpected.Err
	}
	var status *githttp.Err
	if errors.As(err, &status) {
		return fmt.Errorf("the git server answered %d", status.StatusCode())
	}
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("the git server does not answer: %w", withoutURL(err))
	}
	if strings.Contains(err.Error(), "://") {
		return errors.New("the git server's answer is invalid")
	}
	// The error may quote data sent by a server.
	return fmt.Errorf("the git server's answer is invalid: %.200q", err.Error())
}

// bounded limits the responses to a client's requests.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		most := int64(maxFetch)
		if req.Method == http.MethodGet {
			most = maxRefs
		}
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: most}
	}
	return resp, err
}

func (b bounded) CloseIdleConnections() {
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("it is too large")
	}
	return n, err
}
